package operatingsystemconfig

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/extensions/pkg/command"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const namespace = "shoot--demo--one"

func config(purpose extensionsv1alpha1.OperatingSystemConfigPurpose,
	files ...extensionsv1alpha1.File) *extensionsv1alpha1.OperatingSystemConfig {
	return &extensionsv1alpha1.OperatingSystemConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pool", UID: "u"},
		Spec:       extensionsv1alpha1.OperatingSystemConfigSpec{Purpose: purpose, Files: files},
	}
}

func fromSecret(name, key string) extensionsv1alpha1.File {
	return extensionsv1alpha1.File{
		Path: "/etc/token", Content: extensionsv1alpha1.FileContent{
			SecretRef: &extensionsv1alpha1.FileContentSecretRef{Name: name, DataKey: key},
		},
	}
}

func seed(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := command.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "token"},
		Data:       map[string][]byte{"key": []byte("secret")},
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, token)...).Build()
}

// User data is a Secret that goes with its configuration, and the status names it, which the Worker needs.
func TestUserDataOfAPool(t *testing.T) {
	osc := config(extensionsv1alpha1.OperatingSystemConfigPurposeProvision, fromSecret("token", "key"))
	c := seed(t, osc)
	a := &Actuator{Client: c}
	for range 2 {
		if err := a.Reconcile(t.Context(), logr.Discard(), osc, nil); err != nil {
			t.Fatal(err)
		}
	}
	ref := osc.Status.CloudConfig.SecretRef
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, secret); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(secret.Data["cloud_config"]), "#!/bin/bash\n") || !metav1.IsControlledBy(secret, osc) {
		t.Errorf("got %s, owned by %v", secret.Data, secret.OwnerReferences)
	}
	for range 2 {
		if err := a.Delete(t.Context(), logr.Discard(), osc, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

// node-agent does all of purpose reconcile; a Secret for it would be user data that nobody boots.
func TestPurposeReconcileNeedsNothing(t *testing.T) {
	osc := config(extensionsv1alpha1.OperatingSystemConfigPurposeReconcile, fromSecret("none", "key"))
	c := seed(t, osc)
	if err := (&Actuator{Client: c}).Reconcile(t.Context(), logr.Discard(), osc, nil); err != nil ||
		osc.Status.CloudConfig != nil {
		t.Errorf("got %v, %v", osc.Status.CloudConfig, err)
	}
	secrets := &corev1.SecretList{}
	if err := c.List(t.Context(), secrets); err != nil || len(secrets.Items) != 1 {
		t.Errorf("got %v, %v", secrets.Items, err)
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	for want, file := range map[string]extensionsv1alpha1.File{
		`spec.files[0] (/etc/token): content.secretRef: secrets "none" not found`:                         fromSecret("none", "key"),
		`spec.files[0] (/etc/token): content.secretRef: Secret shoot--demo--one/token has no key "other"`: fromSecret("token", "other"),
	} {
		osc := config(extensionsv1alpha1.OperatingSystemConfigPurposeProvision, file)
		if err := (&Actuator{Client: seed(t, osc)}).Reconcile(t.Context(), logr.Discard(), osc, nil); err == nil ||
			err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
