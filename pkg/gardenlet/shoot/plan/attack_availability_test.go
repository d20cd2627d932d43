package plan_test

import (
	"encoding/json"
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

// mostReplicas of a part are the members of an etcd that outlasts the loss of one.
const mostReplicas = 3

// TestAttackReplicasOfControlPlanes plays an owner who wants more of a seed than a highly available control plane
// takes: how many replicas its parts have is not the owner's choice, whatever the Shoot says, and no replica asks for
// more than a single one does.
func TestAttackReplicasOfControlPlanes(t *testing.T) {
	single := plantest.New(t, plantest.AllSettings)
	for _, tolerance := range []gardencorev1beta1.FailureToleranceType{
		gardencorev1beta1.FailureToleranceTypeNode, gardencorev1beta1.FailureToleranceTypeZone,
	} {
		high := plantest.New(t, plantest.AllSettings, plantest.HighlyAvailable(tolerance))
		for _, c := range components.ControlPlane {
			if replicas := replicasOf(t, high, c.Name); replicas > mostReplicas {
				t.Errorf("%s: %s has %d replicas", tolerance, c.Name, replicas)
			}
		}
		got, want := high.APIServer().MinAllowed, single.APIServer().MinAllowed
		if !got.Memory().Equal(*want.Memory()) {
			t.Errorf("%s: kube-apiserver requests %v, a single one %v", tolerance, got, want)
		}
	}
}

// replicasOf a component, 0 if it says none.
func replicasOf(t *testing.T, p *plan.Plan, name string) int {
	t.Helper()
	encoded, err := json.Marshal(p.Values[name])
	if err != nil {
		t.Fatal(err)
	}
	var values struct{ Replicas int }
	if err := json.Unmarshal(encoded, &values); err != nil {
		t.Fatal(err)
	}
	return values.Replicas
}
