package workers

import (
	"strings"
	"testing"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/rotation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

// The Worker and node-agent are told the same of what machines are drained for.
func TestPoolThatIsUpdatedInPlace(t *testing.T) {
	for _, strategy := range []gardencorev1beta1.MachineUpdateStrategy{
		gardencorev1beta1.AutoInPlaceUpdate, gardencorev1beta1.ManualInPlaceUpdate,
	} {
		pool := plantest.New(t, plantest.Worker(func(w *gardencorev1beta1.Worker) {
			w.UpdateStrategy, w.Annotations = &strategy, map[string]string{"note": "mine"}
		}), func(in *plan.Inputs) {
			rotation.Begin(in.Shoot, []string{gardencorev1beta1.OperationRotateCAStart},
				metav1.Unix(1_800_000_000, 0))(&in.Shoot.Status)
		}).Pools[0]
		rendered := renderPool(pool, "user-data")
		hash := rendered.Annotations[gardencorev1beta1.AnnotationWorkerInPlaceUpdate]
		if hash == "" || rendered.Annotations["note"] != "mine" || rendered.MaxSurge.IntVal != 0 ||
			rendered.MaxUnavailable.IntVal != 1 {
			t.Errorf("%s: got %+v", strategy, rendered)
		}
		osc := &extensionsv1alpha1.OperatingSystemConfig{}
		osc.Spec.InPlaceUpdates = inPlaceUpdates(pool)
		secret, err := nodeAgentSecret(pool, osc)
		if err != nil {
			t.Fatal(err)
		}
		for _, told := range []string{hash, "kubelet: 1.36.3", "lastInitiationTime"} {
			if !strings.Contains(string(secret.Data[oscKey]), told) {
				t.Errorf("%s: node-agent is not told %s: %s", strategy, told, secret.Data[oscKey])
			}
		}
	}
}

// A node that is drained for an update is drained as one that goes.
func TestNodesAreDrainedForUpdates(t *testing.T) {
	for reason, want := range map[string]bool{
		machinev1alpha1.CandidateForUpdate: false, machinev1alpha1.SelectedForUpdate: true,
		machinev1alpha1.ReadyForUpdate: false,
	} {
		node := corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: machinev1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: reason,
		}}}}
		if got := isDraining(node); got != want {
			t.Errorf("%s: got %v", reason, got)
		}
	}
}
