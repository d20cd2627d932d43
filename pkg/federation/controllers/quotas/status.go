package quotas

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/quota"
)

// statusOf adds up what the bindings of the namespace request and what the members' ResourceQuotas report.
func statusOf(spec *policyv1alpha1.FederatedResourceQuotaSpec, bindings []workv1alpha2.ResourceBinding,
	works []workv1alpha1.Work) (policyv1alpha1.FederatedResourceQuotaStatus, error) {
	status := policyv1alpha1.FederatedResourceQuotaStatus{Overall: spec.Overall}
	var reported corev1.ResourceList
	for i := range works {
		cluster, found, err := clusterStatus(&works[i])
		if err != nil {
			return status, err
		}
		if found {
			status.AggregatedStatus = append(status.AggregatedStatus, cluster)
			reported = quota.Add(reported, cluster.Used)
		}
	}
	slices.SortFunc(status.AggregatedStatus,
		func(a, b policyv1alpha1.ClusterQuotaStatus) int { return strings.Compare(a.ClusterName, b.ClusterName) })
	var requested corev1.ResourceList
	for i := range bindings {
		requested = quota.Add(requested, quota.Usage(&bindings[i].Spec, bindings[i].Spec.Clusters))
	}
	status.OverallUsed = corev1.ResourceList{}
	for name := range spec.Overall {
		if base, ok := quota.Requested(name); ok {
			status.OverallUsed[name] = requested[base]
		} else {
			status.OverallUsed[name] = reported[name]
		}
	}
	return status, nil
}

// clusterStatus is false until the member has reported.
func clusterStatus(work *workv1alpha1.Work) (policyv1alpha1.ClusterQuotaStatus, bool, error) {
	cluster, _ := clusterv1alpha1.ClusterOf(work.Namespace)
	result := policyv1alpha1.ClusterQuotaStatus{ClusterName: cluster}
	if len(work.Status.ManifestStatuses) == 0 || work.Status.ManifestStatuses[0].Status == nil {
		return result, false, nil
	}
	if err := json.Unmarshal(work.Status.ManifestStatuses[0].Status.Raw, &result.ResourceQuotaStatus); err != nil {
		return result, false, fmt.Errorf("status of the ResourceQuota in cluster %s: %w", cluster, err)
	}
	return result, true, nil
}
