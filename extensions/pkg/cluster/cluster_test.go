package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
)

func seed(t *testing.T, functions interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{extensionsv1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(functions).Build()
}

func object(shoot, seed string) *extensionsv1alpha1.Cluster {
	c := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "shoot--demo--one"}}
	c.Spec.Shoot.Raw = []byte(shoot)
	if seed != "" {
		c.Spec.Seed = &runtime.RawExtension{Raw: []byte(seed)}
	}
	return c
}

// A namespace without a Cluster is no error: objects of seeds and buckets have no shoot. An API server that does not
// answer is one.
func TestGet(t *testing.T) {
	c := seed(t, interceptor.Funcs{},
		object(`{"metadata":{"name":"one","namespace":"garden-demo"}}`, `{"metadata":{"name":"local"}}`))
	got, err := Get(t.Context(), c, "shoot--demo--one")
	if err != nil || got.Shoot.Name != "one" || got.Seed.Name != "local" || got.CloudProfile != nil ||
		got.Name != "shoot--demo--one" {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, namespace := range []string{"", "garden"} {
		if got, err := Get(t.Context(), c, namespace); err != nil || got != nil {
			t.Errorf("%q: got %+v, %v", namespace, got, err)
		}
	}
	away := seed(t, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("connection refused")
		},
	})
	if _, err := Get(t.Context(), away, "shoot--demo--one"); err == nil ||
		!strings.Contains(err.Error(), "reading Cluster shoot--demo--one: connection refused") {
		t.Errorf("got %v", err)
	}
}

func TestDecodeNamesTheField(t *testing.T) {
	for want, c := range map[string]*extensionsv1alpha1.Cluster{
		"Cluster shoot--demo--one: decoding spec.shoot: ": object(`{"spec":[]}`, ""),
		"Cluster shoot--demo--one: decoding spec.seed: ":  object(`{}`, `[]`),
	} {
		if _, err := Decode(c); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"metadata":{"name":"one"},"spec":{"hibernation":{"enabled":true}},"status":{"lastOperation":{"state":"Failed"}}}`)
	f.Add(`null`)
	f.Fuzz(func(_ *testing.T, shoot string) {
		c, err := Decode(object(shoot, ""))
		if err != nil {
			return
		}
		_, _, _ = c.HasFailed(), c.IsHibernated(), c.IsForceDeleted()
	})
}

func TestWhatAShootIs(t *testing.T) {
	on, off := true, false
	hibernated := func(enabled *bool) *gardencorev1beta1.Shoot {
		s := &gardencorev1beta1.Shoot{}
		s.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: enabled}
		return s
	}
	failed := func(state gardencorev1beta1.LastOperationState) *gardencorev1beta1.Shoot {
		s := &gardencorev1beta1.Shoot{}
		s.Status.LastOperation = &gardencorev1beta1.LastOperation{State: state}
		return s
	}
	forced := func(deleted bool, confirmation string) *gardencorev1beta1.Shoot {
		s := &gardencorev1beta1.Shoot{
			ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{gardencorev1beta1.AnnotationConfirmationForceDeletion: confirmation},
			},
		}
		if deleted {
			s.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}
		return s
	}
	for name, test := range map[string]struct {
		cluster                    *Cluster
		hibernated, failed, forced bool
	}{
		"none":                       {},
		"without a shoot":            {cluster: &Cluster{}},
		"awake":                      {cluster: &Cluster{Shoot: hibernated(&off)}},
		"without a word":             {cluster: &Cluster{Shoot: hibernated(nil)}},
		"hibernated":                 {cluster: &Cluster{Shoot: hibernated(&on)}, hibernated: true},
		"failed for good":            {cluster: &Cluster{Shoot: failed("Failed")}, failed: true},
		"failed, and tried again":    {cluster: &Cluster{Shoot: failed("Error")}},
		"forced":                     {cluster: &Cluster{Shoot: forced(true, "true")}, forced: true},
		"forced, but not deleted":    {cluster: &Cluster{Shoot: forced(false, "true")}},
		"deleted, confirmed wrongly": {cluster: &Cluster{Shoot: forced(true, "yes")}},
	} {
		c := test.cluster
		if c.IsHibernated() != test.hibernated || c.HasFailed() != test.failed || c.IsForceDeleted() != test.forced {
			t.Errorf("%s: hibernated %v, failed %v, forced %v", name, c.IsHibernated(), c.HasFailed(),
				c.IsForceDeleted())
		}
	}
}

// gardenlet writes the names when the Secrets are there; until then the operation is tried again.
func TestSecretsOfTheControlPlane(t *testing.T) {
	c := &Cluster{Name: "shoot--demo--one", Annotations: map[string]string{
		gardencorev1beta1.AnnotationGenericTokenKubeconfigSecretName: "kubeconfig-1",
		gardencorev1beta1.AnnotationEgressClientSecretName:           "egress-1",
	}}
	for want, read := range map[string]func(*Cluster) (string, error){
		"kubeconfig-1": (*Cluster).GenericTokenKubeconfig, "egress-1": (*Cluster).EgressClient,
	} {
		if got, err := read(c); err != nil || got != want {
			t.Errorf("got %s, %v", got, err)
		}
		if _, err := read(&Cluster{Name: "shoot--demo--one"}); err == nil ||
			!strings.Contains(err.Error(), "Cluster shoot--demo--one: annotation") {
			t.Errorf("got %v", err)
		}
		if _, err := read(nil); err == nil {
			t.Error("a name was read where there is no Cluster")
		}
	}
}

func TestRESTConfigNamesTheSecret(t *testing.T) {
	broken := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--demo--two", Name: internalSecret},
		Data:       map[string][]byte{"kubeconfig": []byte("\t")},
	}
	c := seed(t, interceptor.Funcs{}, broken)
	for namespace, want := range map[string]string{
		"shoot--demo--one": "reading Secret shoot--demo--one/gardener-internal",
		"shoot--demo--two": "Secret shoot--demo--two/gardener-internal: key kubeconfig",
	} {
		if _, err := ShootClient(t.Context(), c, namespace, runtime.NewScheme()); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Extensions know of a control plane's availability what gardenlet does.
func TestAvailability(t *testing.T) {
	const high = `{"spec":{"controlPlane":{"highAvailability":{"failureTolerance":{"type":"zone"}}}}}`
	zone := component.Availability{Tolerance: gardencorev1beta1.FailureToleranceTypeZone}
	single := zone
	single.IsSeedSingle = true
	for name, test := range map[string]struct {
		shoot       string
		annotations map[string]string
		want        component.Availability
	}{
		"none":            {`{}`, nil, component.Availability{}},
		"zone":            {high, nil, zone},
		"zone, one node":  {high, map[string]string{gardencorev1beta1.AnnotationSingleNodeSeed: "true"}, single},
		"zone, some text": {high, map[string]string{gardencorev1beta1.AnnotationSingleNodeSeed: "maybe"}, zone},
	} {
		c := object(test.shoot, "")
		c.Annotations = test.annotations
		decoded, err := Decode(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := decoded.Availability(); got != test.want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if got := (*Cluster)(nil).Availability(); got.IsHigh() {
		t.Errorf("without a shoot: %+v", got)
	}
}
