package drain

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/failover"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// nowhereAfter is for how long no cluster may take an object until the old copy is not waited for: the scheduler has
// tried again meanwhile.
const nowhereAfter = 20 * time.Second

// leaves tells whether a Work has to go before its member sleeps. b is nil if the binding is gone.
func leaves(cluster *clusterv1alpha1.Cluster, work *workv1alpha1.Work, b bindings.Binding, now time.Time) bool {
	if b == nil || work.DeletionTimestamp != nil {
		return true
	}
	spec := b.BindingSpec()
	if suspension := spec.Suspension; suspension != nil && suspension.Scheduling != nil && *suspension.Scheduling {
		return false
	}
	if isPlaced(spec, cluster.Name) {
		return isExpelled(cluster, spec, now)
	}
	return !nowhere(b, now)
}

// isPlaced tells whether a decision names a cluster. If not, a Work that is there waits for its replacement elsewhere,
// or is about to go.
func isPlaced(spec *workv1alpha2.ResourceBindingSpec, cluster string) bool {
	return slices.ContainsFunc(spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == cluster })
}

// isExpelled tells whether the taint of a hibernated cluster, be it there or not, has an object leave before the time
// for that is over.
func isExpelled(cluster *clusterv1alpha1.Cluster, spec *workv1alpha2.ResourceBindingSpec, now time.Time) bool {
	taint := corev1.Taint{Key: clusterv1alpha1.TaintHibernated, Effect: corev1.TaintEffectNoExecute}
	if at := slices.IndexFunc(cluster.Spec.Taints, isHibernation); at >= 0 {
		taint = cluster.Spec.Taints[at]
	}
	var tolerations []corev1.Toleration
	if spec.Placement != nil {
		tolerations = spec.Placement.ClusterTolerations
	}
	eviction := failover.NoExecute([]corev1.Taint{taint}, tolerations, now)
	return eviction.Leave && eviction.At.Before(now.Add(clusterv1alpha1.DrainTimeout))
}

func isHibernation(taint corev1.Taint) bool { return taint.Key == clusterv1alpha1.TaintHibernated }

// isDrained tells whether a member is to be empty.
func isDrained(cluster *clusterv1alpha1.Cluster) bool {
	return slices.ContainsFunc(cluster.Spec.Taints, isHibernation)
}

// nowhere tells whether no cluster takes what left another: the copy there stays, and sleeps with it.
func nowhere(b bindings.Binding, now time.Time) bool {
	status := karmada.Explained(b)
	scheduled := meta.FindStatusCondition(status.Conditions, workv1alpha2.ConditionScheduled)
	if scheduled == nil || status.SchedulerObservedGeneration != b.GetGeneration() {
		return false
	}
	return scheduled.Reason != workv1alpha2.ReasonSuccess && now.Sub(scheduled.LastTransitionTime.Time) > nowhereAfter
}
