package shoot

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/rotation"
)

func TestFlows(t *testing.T) {
	withWorkers, fleet := operation(t, func(*Inputs) {}), operation(t, workerless)
	rotating := operation(t, func(in *Inputs) {
		rotation.Begin(in.Shoot, []string{gardencorev1beta1.OperationRotateCredentialsStart}, metav1.Unix(1_800_000_000, 0))(&in.Shoot.Status)
	})
	for _, test := range []struct {
		name  string
		build func() (*flow.Flow, error)
	}{
		{"reconcile-workers", withWorkers.ReconcileFlow},
		{"reconcile-workerless", fleet.ReconcileFlow},
		{"hibernate-workers", operation(t, hibernated(false)).ReconcileFlow},
		{"hibernate-workerless", operation(t, func(in *Inputs) { workerless(in); hibernated(false)(in) }).ReconcileFlow},
		{"hibernated", operation(t, hibernated(true)).ReconcileFlow},
		{"reconcile-rotating", rotating.ReconcileFlow},
		{"deletion", withWorkers.DeletionFlow},
	} {
		t.Run(test.name, func(t *testing.T) {
			graph, err := test.build()
			if err != nil {
				t.Fatal(err)
			}
			compare(t, "flow-"+test.name+".txt", graph.String())
		})
	}
}

func TestVPNWaitsForInfrastructureOnlyIfThatChoosesTheNetwork(t *testing.T) {
	const dependent = "Deploying vpn-seed-server <- Initializing secrets management, Waiting until infrastructure is ready"
	known := operation(t, func(*Inputs) {})
	unknown := operation(t, func(in *Inputs) { in.Shoot.Spec.Networking.Nodes = nil })
	for o, want := range map[*Operation]bool{known: false, unknown: true} {
		graph, err := o.ReconcileFlow()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(graph.String(), dependent); got != want {
			t.Errorf("the VPN waits for the infrastructure: %v, want %v", got, want)
		}
	}
}

// hibernated makes the inputs those of a shoot that is to sleep, or does so already.
func hibernated(asleep bool) func(*Inputs) {
	return func(in *Inputs) {
		in.Shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: ptr.To(true)}
		in.Asleep = asleep
	}
}

func operation(t *testing.T, change func(*Inputs)) *Operation {
	t.Helper()
	in := inputs()
	change(in)
	return &Operation{Plan: plan(t, in), Inputs: in}
}
