package references

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// SnapshotOf tells where a referrer is, or still is: copies that are being evicted need what they refer to until they
// are gone. It is nil while the referrer is nowhere.
func SnapshotOf(key types.NamespacedName, spec *workv1alpha2.ResourceBindingSpec) *workv1alpha2.BindingSnapshot {
	clusters := map[string]workv1alpha2.TargetCluster{}
	for _, task := range spec.GracefulEvictionTasks {
		clusters[task.FromCluster] = workv1alpha2.TargetCluster{Name: task.FromCluster}
	}
	for _, c := range spec.Clusters {
		clusters[c.Name] = workv1alpha2.TargetCluster{Name: c.Name, Replicas: c.Replicas}
	}
	if len(clusters) == 0 {
		return nil
	}
	return &workv1alpha2.BindingSnapshot{
		Namespace: key.Namespace, Name: key.Name,
		Clusters: slices.SortedFunc(maps.Values(clusters),
			func(a, b workv1alpha2.TargetCluster) int { return strings.Compare(a.Name, b.Name) }),
	}
}

// KeyOf the referrer.
func KeyOf(s workv1alpha2.BindingSnapshot) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
}

// WithSnapshot gives the list with the entry of one referrer set, or taken out if the snapshot is nil. The order is
// always the same.
func WithSnapshot(list []workv1alpha2.BindingSnapshot, referrer types.NamespacedName,
	snapshot *workv1alpha2.BindingSnapshot) []workv1alpha2.BindingSnapshot {
	result := slices.DeleteFunc(slices.Clone(list),
		func(s workv1alpha2.BindingSnapshot) bool { return KeyOf(s) == referrer })
	if snapshot != nil {
		result = append(result, *snapshot)
	}
	if len(result) == 0 {
		return nil
	}
	slices.SortFunc(result, func(a, b workv1alpha2.BindingSnapshot) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return result
}

// Inherit takes over what the referrers of an object without a policy agree on. Overwriting and preserving need one
// that says so; dispatching to a cluster is suspended if that of all that need the object there is.
func Inherit(spec *workv1alpha2.ResourceBindingSpec, referrers []*workv1alpha2.ResourceBindingSpec) {
	spec.ConflictResolution = policyv1alpha1.ConflictAbort
	spec.PreserveResourcesOnDeletion = nil
	wanted, suspended := map[string]int{}, map[string]int{}
	for _, referrer := range referrers {
		if referrer.ConflictResolution == policyv1alpha1.ConflictOverwrite {
			spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
		}
		if p := referrer.PreserveResourcesOnDeletion; p != nil && *p {
			spec.PreserveResourcesOnDeletion = new(true)
		}
		for _, c := range referrer.Clusters {
			wanted[c.Name]++
			if referrer.Suspension.SuspendsDispatching(c.Name) {
				suspended[c.Name]++
			}
		}
	}
	spec.Suspension = nil
	maps.DeleteFunc(suspended, func(cluster string, count int) bool { return count < wanted[cluster] })
	if len(suspended) > 0 {
		spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{
			DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: slices.Sorted(maps.Keys(suspended))},
		}}
	}
}
