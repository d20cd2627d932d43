package workers

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/access"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/controlplane"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
)

// fleetsInterval is how often a shoot that is to sleep is asked whether its fleets are done.
const fleetsInterval = time.Second

// addFleetsWait adds the wait until the fleets that the shoot is a member of have moved away what runs there. Until
// then there must be machines.
func (w *Workers) addFleetsWait(g *flow.Graph, c controlplane.Tasks) flow.TaskID {
	return g.Add(flow.Task{
		Name: "Waiting until fleets have moved their objects away", Dependencies: []flow.TaskID{c.APIServer},
		SkipIf: w.Plan.Workerless || w.Plan.Hibernation != plan.FallingAsleep, Fn: w.waitForFleets,
	})
}

// waitForFleets waits for the fleets, but no longer than they have a right to: their users do not decide whether the
// shoot sleeps.
func (w *Workers) waitForFleets(ctx context.Context) error {
	clientset, err := access.Clientset(ctx, w.Seed, w.Plan.Namespace)
	if err != nil {
		return err
	}
	waiting := awaitDrained(ctx, clientset, fleetsPatience(w.Since, time.Now()))
	if waiting != nil && ctx.Err() == nil {
		w.Log.Info("Going on with the hibernation although fleets are not done", "reason", waiting.Error())
	}
	return ctx.Err()
}

// fleetsPatience is how long fleets may still be waited for. All tries to bring about one change of the Shoot count
// together.
func fleetsPatience(since *metav1.Time, now time.Time) time.Duration {
	return ptr.Deref(since, metav1.NewTime(now)).Add(clusterv1alpha1.DrainTimeout).Sub(now)
}

// awaitDrained waits until no fleet holds the shoot any more. The error tells why it gave up.
func awaitDrained(ctx context.Context, clientset kubernetes.Interface, patience time.Duration) error {
	if patience <= 0 {
		return nil
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, fleetsInterval, patience, true, func(ctx context.Context) (bool, error) {
		last = drained(ctx, clientset, time.Now())
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("after %s: %w", patience, last)
	}
	return nil
}

// drained is the error that says which fleet holds the shoot.
func drained(ctx context.Context, clientset kubernetes.Interface, now time.Time) error {
	ours := metav1.ListOptions{LabelSelector: clusterv1alpha1.DrainLeaseLabel + "=true"}
	leases, err := clientset.CoordinationV1().Leases(metav1.NamespaceSystem).List(ctx, ours)
	if err != nil {
		return fmt.Errorf("listing the Leases of fleets: %w", err)
	}
	for i := range leases.Items {
		if isHeld(&leases.Items[i], now) {
			return fmt.Errorf("Lease %s says that a fleet has objects to move away", leases.Items[i].Name)
		}
	}
	return nil
}

// isHeld tells whether a Lease has been renewed lately.
func isHeld(lease *coordinationv1.Lease, now time.Time) bool {
	renewed, duration := lease.Spec.RenewTime, time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second
	return renewed != nil && now.Sub(renewed.Time) < duration
}
