package policies

import (
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// affinityGroups gives the groups that an object's labels put it in; nil without any. A label that is absent or empty
// makes no group.
func affinityGroups(affinity *policyv1alpha1.WorkloadAffinity,
	labels map[string]string) *workv1alpha2.WorkloadAffinityGroups {
	if affinity == nil {
		return nil
	}
	groups := workv1alpha2.WorkloadAffinityGroups{
		AffinityGroup:     affinityGroup(affinity.Affinity, labels),
		AntiAffinityGroup: affinityGroup(affinity.AntiAffinity, labels),
	}
	if groups == (workv1alpha2.WorkloadAffinityGroups{}) {
		return nil
	}
	return &groups
}

func affinityGroup(term *policyv1alpha1.WorkloadAffinityTerm, labels map[string]string) string {
	if term == nil || labels[term.GroupByLabelKey] == "" {
		return ""
	}
	return term.GroupByLabelKey + "=" + labels[term.GroupByLabelKey]
}
