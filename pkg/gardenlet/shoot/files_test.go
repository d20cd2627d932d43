package shoot

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/foundation"
)

func TestSoonest(t *testing.T) {
	for _, test := range []struct{ a, b, want time.Duration }{{0, 0, 0}, {3, 0, 3}, {0, 4, 4}, {3, 4, 3}} {
		if got := soonest(test.a, test.b); got != test.want {
			t.Errorf("soonest(%d, %d) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

// A change of a ConfigMap calls for an operation, also when gardenlet was not running meanwhile; one that failed is
// not tried again before there is another change.
func TestFilesChanged(t *testing.T) {
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1"}}
	shoot.Status.TechnicalID = "shoot--demo--member1"
	shoot.Spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{
		AuditConfig: &gardencorev1beta1.AuditConfig{
			AuditPolicy: &gardencorev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "audit"}},
		},
	}
	policy := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "audit"},
		Data:       map[string]string{"policy": "first"},
	}
	garden := fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithObjects(policy).Build()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shoot.Status.TechnicalID}}
	seed := fake.NewClientBuilder().WithObjects(namespace).Build()
	r := &Reconciler{Garden: garden, Seed: seed}
	check := func(when string, want bool) {
		t.Helper()
		if changed, err := r.filesChanged(t.Context(), shoot); err != nil || changed != want {
			t.Errorf("%s: changed = %t, error %v; want %t", when, changed, err, want)
		}
	}
	check("never deployed", true)
	operate := func() {
		t.Helper()
		if err := r.noteFiles(t.Context(), shoot); err != nil {
			t.Fatal(err)
		}
	}
	operate()
	check("after an operation", false)

	state, err := r.stateOfFiles(t.Context(), shoot)
	if err != nil {
		t.Fatal(err)
	}
	namespace.Annotations = map[string]string{foundation.AnnotationFiles: state}
	if err := seed.Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	r = &Reconciler{Garden: garden, Seed: seed}
	check("after a restart", false)

	policy.Data["policy"] = "second"
	if err := garden.Update(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	check("with another policy", true)
	operate()
	check("after another operation", false)

	if err := garden.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	check("without the policy", true)
	operate()
	check("after an operation that found none", false)

	shoot.Spec.Kubernetes.KubeAPIServer = nil
	check("without a reference", false)
	if wait := filesPeriodOf(shoot); wait != 0 {
		t.Errorf("a shoot without files is looked at every %s", wait)
	}
}
