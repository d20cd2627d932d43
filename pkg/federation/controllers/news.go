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

// news knows since when the members owe news of a binding. It only saves writes: what it forgets in a restart is waited for once more.
type news struct {
	now func() time.Time

	mu   sync.Mutex
	owed map[types.NamespacedName]time.Time
}

func newNews(now func() time.Time) *news {
	return &news{now: now, owed: map[types.NamespacedName]time.Time{}}
}

// wait tells how long to wait for those that have not reported; those that take longer than waitForNews are not waited for.
func (n *news) wait(key types.NamespacedName, complete bool) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if complete {
		delete(n.owed, key)
		return 0
	}
	since, owed := n.owed[key]
	if !owed {
		since = n.now()
		n.owed[key] = since
	}
	return max(0, since.Add(waitForNews).Sub(n.now()))
}

func (n *news) forget(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.owed, key)
}

// allReported tells whether every target cluster has told what became of its Work as it is now, or cannot for now.
func (w *works) allReported(ctx context.Context, b bindings.Binding, existing map[string]*workv1alpha1.Work, failures map[string]error) (bool, error) {
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
