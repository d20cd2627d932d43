package shoot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/etcd/request"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/rotation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/deletion"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

func TestFlows(t *testing.T) {
	withWorkers, fleet := operation(t, func(*plan.Inputs) {}), operation(t, plantest.Workerless)
	rotating := operation(t, func(in *plan.Inputs) {
		rotation.Begin(in.Shoot, []string{gardencorev1beta1.OperationRotateCredentialsStart},
			metav1.Unix(1_800_000_000, 0))(&in.Shoot.Status)
	})
	for _, test := range []struct {
		name  string
		build func() (*flow.Flow, error)
	}{
		{"reconcile-workers", withWorkers.ReconcileFlow},
		{"reconcile-workerless", fleet.ReconcileFlow},
		{"hibernate-workers", operation(t, plantest.Hibernated(false)).ReconcileFlow},
		{
			"hibernate-workerless", operation(t,
				func(in *plan.Inputs) { plantest.Workerless(in); plantest.Hibernated(false)(in) }).ReconcileFlow,
		},
		{"hibernated", operation(t, plantest.Hibernated(true)).ReconcileFlow},
		{"reconcile-backed-up", operation(t, plantest.BackedUp).ReconcileFlow},
		{"reconcile-restoring", operation(t, func(in *plan.Inputs) {
			plantest.BackedUp(in)
			in.Restore.Restore = request.Restore{To: "2026-01-01T12:00:00Z", ID: "one"}
		}).ReconcileFlow},
		{"reconcile-rotating", rotating.ReconcileFlow},
		{"deletion-workers", deletionOf(t, func(*plan.Inputs) {}).Flow},
		{"deletion", deletionOf(t, plantest.Workerless).Flow},
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

// A control plane of replicas is made in the same order as any other, but that its API servers are rolled when its
// etcds are as they should be, and not beside them, and that it has a second path into the shoot.
func TestFlowOfReplicas(t *testing.T) {
	const beside = "Deploying kube-apiserver <- Deploying etcd-events, Deploying etcd-main, "
	const after = "Deploying kube-apiserver <- "
	const ready = ", Waiting until etcd-events is ready, Waiting until etcd-main is ready"
	single, err := operation(t, func(*plan.Inputs) {}).ReconcileFlow()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		beside+"Initializing secrets management", after+"Initializing secrets management"+ready,
		"Deploying vpn-seed-server-1 (skipped)", "Deploying vpn-seed-server-1",
		"vpn-seed-server-1 is ready (skipped)", "vpn-seed-server-1 is ready",
	).Replace(single.String())
	got, err := operation(t, plantest.HighlyAvailable(gardencorev1beta1.FailureToleranceTypeZone)).ReconcileFlow()
	if err != nil {
		t.Fatal(err)
	}
	if difference := cmp.Diff(want, got.String()); difference != "" {
		t.Error(difference)
	}
}

func TestVPNWaitsForInfrastructureOnlyIfThatChoosesTheNetwork(t *testing.T) {
	const dependent = "Deploying vpn-seed-server <- Initializing secrets management, Waiting until infrastructure " +
		"is ready"
	known := operation(t, func(*plan.Inputs) {})
	unknown := operation(t, func(in *plan.Inputs) { in.Shoot.Spec.Networking.Nodes = nil })
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

func operation(t *testing.T, change func(*plan.Inputs)) *Operation {
	t.Helper()
	in := plantest.Inputs()
	change(in)
	return newOperation(plantest.Plan(t, in), in, nil, nil, nil, logr.Discard())
}

func deletionOf(t *testing.T, change func(*plan.Inputs)) *deletion.Deletion {
	t.Helper()
	in := plantest.Inputs()
	change(in)
	p, err := plan.NewDeletion(in.ProjectName, in.Shoot)
	if err != nil {
		t.Fatal(err)
	}
	return deletion.New(p, nil, nil)
}

// compare compares a text with a file in testdata; UPDATE_GOLDEN=1 writes it.
func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run with UPDATE_GOLDEN=1 to write it", err)
	}
	if difference := cmp.Diff(string(want), got); difference != "" {
		t.Errorf("%s differs (-want +got); run with UPDATE_GOLDEN=1 when that is meant:\n%s", path, difference)
	}
}

// Only a shoot with machines that falls asleep waits, and it waits before its Worker hears of the sleep.
func TestWhoWaitsForFleets(t *testing.T) {
	const task = "Waiting until fleets have moved their objects away"
	for _, test := range []struct {
		name   string
		change func(*plan.Inputs)
		want   bool
	}{
		{"awake", func(*plan.Inputs) {}, false},
		{"falls asleep", plantest.Hibernated(false), true},
		{"workerless", func(in *plan.Inputs) { plantest.Workerless(in); plantest.Hibernated(false)(in) }, false},
	} {
		graph, err := operation(t, test.change).ReconcileFlow()
		if err != nil {
			t.Fatal(err)
		}
		text := graph.String()
		if strings.Contains(text, task+" <- ") != test.want || strings.Contains(text, task+" (skipped)") == test.want {
			t.Errorf("%s: %s", test.name, text)
		}
	}
}
