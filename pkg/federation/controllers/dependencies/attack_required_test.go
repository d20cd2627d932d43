package dependencies

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// TestAttackRequiredByOthers plays an application team that writes a binding which another namespace's is said to
// require: the fleet would tell in it what the other one says, such as where it is suspended, and act by that.
func TestAttackRequiredByOthers(t *testing.T) {
	theirs := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "vault-deployment"}}
	theirs.Spec.ConflictResolution, theirs.Spec.Clusters = policyv1alpha1.ConflictOverwrite,
		[]workv1alpha2.TargetCluster{{Name: "m7"}}
	theirs.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: new(true)}}
	mine := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings-configmap"}}
	mine.Spec.Resource = workv1alpha2.ObjectReference{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings",
	}
	mine.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "bank", Name: "vault-deployment"}}
	f := newFixture(t, sourceOf{named1("settings")},
		slices.Concat(referrer("a", nil, "m1"), []client.Object{configMap("shop", "settings", nil), theirs, mine})...)
	f.reconcile("a")
	if spec := f.binding("settings").Spec; spec.ConflictResolution != policyv1alpha1.ConflictAbort ||
		spec.Suspension != nil {
		t.Errorf("the binding has taken over %q and %+v", spec.ConflictResolution, spec.Suspension)
	}
}
