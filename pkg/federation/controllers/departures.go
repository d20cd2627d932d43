package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	failovercontrollers "github.com/trellis-garden/trellis/pkg/federation/controllers/failover"
	"github.com/trellis-garden/trellis/pkg/federation/failover"
	"github.com/trellis-garden/trellis/pkg/federation/identity"
)

// departures are the graceful eviction tasks of a binding, as far as they concern its Works.
type departures struct {
	tasks []workv1alpha2.GracefulEvictionTask
}

func departuresOf(b bindings.Binding) departures {
	return departures{b.BindingSpec().GracefulEvictionTasks}
}

// keeps tells whether the Work of a cluster that is left stays for now, as it is.
func (d departures) keeps(cluster string) bool {
	return slices.ContainsFunc(d.tasks, func(t workv1alpha2.GracefulEvictionTask) bool {
		return t.FromCluster == cluster && failover.PurgeMode(t.PurgeMode) != policyv1alpha1.PurgeModeDirectly
	})
}

// purged tells whether the Work of a cluster has to go at once.
func (d departures) purged(cluster string) bool {
	return slices.ContainsFunc(d.tasks, func(t workv1alpha2.GracefulEvictionTask) bool {
		return t.FromCluster == cluster && failover.PurgeMode(t.PurgeMode) == policyv1alpha1.PurgeModeDirectly
	})
}

// share keeps a cluster's old replica count until its eviction task ends.
func (d departures) share(target workv1alpha2.TargetCluster) workv1alpha2.TargetCluster {
	for _, t := range d.tasks {
		if t.FromCluster == target.Name && t.Replicas != nil {
			target.Replicas = max(target.Replicas, *t.Replicas)
		}
	}
	return target
}

// mustWait tells whether new copies have to wait, because an old one is to be gone before and its cluster can do that.
// A cluster that is down cannot be waited for: its copy goes when it is back.
func (w *works) mustWait(ctx context.Context, d departures, existing map[string]*workv1alpha1.Work) (bool, error) {
	for _, t := range d.tasks {
		if existing[t.FromCluster] == nil || !d.purged(t.FromCluster) {
			continue
		}
		cluster, err := w.cluster(ctx, t.FromCluster)
		if err != nil {
			return false, err
		}
		if cluster != nil && !knownDown(cluster) {
			return true, nil
		}
	}
	return false, nil
}

// removeDeparted removes the Work of a cluster that has no part in the decision. Evictions need no confirmation.
func (w *works) removeDeparted(ctx context.Context, d departures, cluster string, work *workv1alpha1.Work) error {
	if d.keeps(cluster) {
		return nil
	}
	if d.purged(cluster) && work.DeletionTimestamp == nil {
		if err := failovercontrollers.ConfirmEviction(ctx, w.client, work); err != nil {
			return err
		}
	}
	return w.removeMoved(ctx, cluster, work)
}

// preserve gives a new copy the labels that were taken from the status of the one it replaces, and lets it keep them.
// The fleet's own labels are none of what people of a namespace, who write policies and bindings, may set.
func (d departures) preserve(work, existing *workv1alpha1.Work, cluster string) error {
	labels := map[string]string{}
	if existing != nil && existing.Annotations[workv1alpha1.PreservedLabelsAnnotation] != "" {
		if err := json.Unmarshal([]byte(existing.Annotations[workv1alpha1.PreservedLabelsAnnotation]),
			&labels); err != nil {
			return fmt.Errorf("annotation %s: %w", workv1alpha1.PreservedLabelsAnnotation, err)
		}
	}
	for _, t := range d.tasks {
		if !slices.Contains(t.ClustersBeforeFailover, cluster) {
			maps.Copy(labels, t.PreservedLabelState)
		}
	}
	maps.DeleteFunc(labels, func(key, _ string) bool { return identity.IsOwn(key) })
	if len(labels) == 0 {
		return nil
	}
	object, err := decodeManifest(work, 0)
	if err != nil {
		return err
	}
	for key, value := range labels {
		bindings.SetLabel(object, key, value)
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	work.Spec.Workload.Manifests[0].Raw = raw
	text, err := json.Marshal(labels)
	if err != nil {
		return err
	}
	bindings.SetAnnotation(work, workv1alpha1.PreservedLabelsAnnotation, string(text))
	return nil
}

// aggregatedGeneration is that of the binding when the statuses of all copies speak of it. Nobody asks while no copy
// waits for another.
func aggregatedGeneration(b bindings.Binding, existing map[string]*workv1alpha1.Work) int64 {
	if len(b.BindingSpec().GracefulEvictionTasks) == 0 {
		return 0
	}
	for _, target := range b.BindingSpec().Clusters {
		work := existing[target.Name]
		if work == nil || work.DeletionTimestamp != nil || !reportsOn(work) {
			return b.BindingStatus().AggregatedGeneration
		}
	}
	return b.GetGeneration()
}

// reportsOn tells whether the status of a Work is about its spec as it is now.
func reportsOn(work *workv1alpha1.Work) bool {
	applied := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.ConditionApplied)
	return applied != nil && applied.Status == metav1.ConditionTrue && applied.ObservedGeneration == work.Generation
}
