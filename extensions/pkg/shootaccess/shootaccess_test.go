package shootaccess

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trellis-garden/trellis/pkg/component/golden"
)

const namespace = "shoot--demo--one"

func stored(t *testing.T, c client.Client) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "shoot-access-driver"},
		secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// resourceManager answers the first read of a Secret that asks for a token with one, as resource-manager would
// meanwhile.
func resourceManager(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	if err := c.Get(ctx, key, object, options...); err != nil {
		return err
	}
	secret, ok := object.(*corev1.Secret)
	if !ok || secret.Labels["resources.gardener.cloud/purpose"] != "token-requestor" {
		return nil
	}
	secret.Data = map[string][]byte{"token": []byte("t")}
	return c.Update(ctx, secret)
}

func TestRequestReturnsWithTheToken(t *testing.T) {
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Get: resourceManager}).Build()
	if err := Request(t.Context(), c, namespace, "driver"); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "secret", stored(t, c))
}

// Asking again must not take away what resource-manager has written, nor what others say about the Secret.
func TestRequestLeavesWhatIsThere(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "shoot-access-driver", Labels: map[string]string{"others": "label"},
			Annotations: map[string]string{
				"serviceaccount.resources.gardener.cloud/token-renew-timestamp": "2026-01-01T00:00:00Z",
			},
		},
		Data: map[string][]byte{"token": []byte("old")},
	}).Build()
	if err := Request(t.Context(), c, namespace, "driver"); err != nil {
		t.Fatal(err)
	}
	secret := stored(t, c)
	if string(secret.Data["token"]) != "old" || secret.Labels["others"] != "label" || len(secret.Annotations) != 3 {
		t.Errorf("got %v %v %v", secret.Labels, secret.Annotations, secret.Data)
	}
}

// Nobody answers: the error says whose turn it is.
func TestRequestNamesWhoIsWaitedFor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object,
			options ...client.CreateOption) error {
			defer cancel()
			return c.Create(ctx, object, options...)
		},
	}).Build()
	err := Request(ctx, c, namespace, "driver")
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "shoot--demo--one/shoot-access-driver") ||
		!strings.Contains(err.Error(), "resource-manager") {
		t.Errorf("got %v", err)
	}
}

func TestRevoke(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shoot-access-driver"},
	}).Build()
	for _, state := range []string{"there", "gone"} {
		if err := Revoke(t.Context(), c, namespace, "driver"); err != nil {
			t.Errorf("%s: %v", state, err)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "shoot-access-driver"},
		&corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

// What a pod asks for itself stays, but for rights, and its own volumes stay beside ours.
func TestPod(t *testing.T) {
	privileged := true
	pod := Pod(corev1.PodSpec{
		Containers: []corev1.Container{
			{
				Name: "manager", Image: "manager:1", Args: []string{"--kubeconfig=" + KubeconfigFile},
				SecurityContext: &corev1.SecurityContext{Privileged: &privileged},
			},
			{Name: "driver", Image: "driver:1", VolumeMounts: []corev1.VolumeMount{{Name: "own", MountPath: "/own"}}},
		},
		Volumes: []corev1.Volume{
			{Name: "own", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
	}, "generic-token-kubeconfig-1", "driver")
	golden.Check(t, "pod", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "driver"}, Spec: pod})
}
