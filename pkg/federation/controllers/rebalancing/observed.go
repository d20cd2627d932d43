package rebalancing

import (
	"cmp"
	"slices"
	"strings"

	appsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/apps/v1alpha1"
)

// observe gives the status list for the workloads of a spec: what was handled keeps its result, what was handled and is
// not asked for any more stays for the record, and what is new has no result yet. The order is always the same.
func observe(known []appsv1alpha1.ObservedWorkload,
	wanted []appsv1alpha1.ObjectReference) []appsv1alpha1.ObservedWorkload {
	results := map[appsv1alpha1.ObjectReference]appsv1alpha1.ObservedWorkload{}
	for _, w := range wanted {
		results[w] = appsv1alpha1.ObservedWorkload{Workload: w}
	}
	for _, o := range known {
		if _, found := results[o.Workload]; found || o.Result == appsv1alpha1.RebalanceSuccessful {
			results[o.Workload] = o
		}
	}
	list := make([]appsv1alpha1.ObservedWorkload, 0, len(results))
	for _, o := range results {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b appsv1alpha1.ObservedWorkload) int {
		return cmp.Or(
			strings.Compare(a.Workload.APIVersion, b.Workload.APIVersion),
			strings.Compare(a.Workload.Kind, b.Workload.Kind),
			strings.Compare(a.Workload.Namespace, b.Workload.Namespace),
			strings.Compare(a.Workload.Name, b.Workload.Name),
		)
	})
	return list
}

func finished(list []appsv1alpha1.ObservedWorkload) bool {
	return !slices.ContainsFunc(list, func(o appsv1alpha1.ObservedWorkload) bool { return o.Result == "" })
}
