package controllers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
)

// waitForReports is for how long members that have not reported hold up the status of a binding. Their reports announce
// themselves; it bounds how old the status of the others may be.
const waitForReports = 2 * time.Second

// reportDelay knows since when reports of members on a binding are outstanding. It only saves writes: what it forgets
// in a restart is waited for once more.
type reportDelay struct {
	now func() time.Time

	mu          sync.Mutex
	outstanding map[types.NamespacedName]time.Time
}

func newReportDelay(now func() time.Time) *reportDelay {
	return &reportDelay{now: now, outstanding: map[types.NamespacedName]time.Time{}}
}

// wait tells how long to wait for those that have not reported; those that take longer than waitForReports are not
// waited for.
func (n *reportDelay) wait(key types.NamespacedName, complete bool) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if complete {
		delete(n.outstanding, key)
		return 0
	}
	since, outstanding := n.outstanding[key]
	if !outstanding {
		since = n.now()
		n.outstanding[key] = since
	}
	return max(0, since.Add(waitForReports).Sub(n.now()))
}

func (n *reportDelay) forget(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.outstanding, key)
}

// allReported tells whether every target cluster has told what became of its Work as it is now, or cannot for now.
func (w *works) allReported(ctx context.Context, b bindings.Binding, existing map[string]*workv1alpha1.Work,
	failures map[string]error) (bool, error) {
	for _, target := range bindings.Targets(b.BindingSpec()) {
		if failures[target.Name] != nil {
			continue
		}
		cluster, err := w.cluster(ctx, target.Name)
		if err != nil {
			return false, err
		}
		if cluster == nil || knownDown(cluster) {
			continue
		}
		work := existing[target.Name]
		if work == nil || !hasReported(work) {
			return false, nil
		}
	}
	return true, nil
}

func hasReported(work *workv1alpha1.Work) bool {
	if work.Spec.SuspendDispatching != nil && *work.Spec.SuspendDispatching {
		return meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.ConditionDispatching) != nil
	}
	applied := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.ConditionApplied)
	return applied != nil && applied.ObservedGeneration == work.Generation
}
