package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/quota"
)

// withinQuota gives the decision, or, if a FederatedResourceQuota of the namespace does not allow it, the one before
// with the reason.
func (s *scheduling) withinQuota(ctx context.Context, b bindings.Binding, decision outcome) (outcome, error) {
	limits, err := s.limits(ctx, b.GetNamespace())
	if err != nil || len(limits) == 0 {
		return decision, err
	}
	var list workv1alpha2.ResourceBindingList
	if err := s.client.List(ctx, &list, client.InNamespace(b.GetNamespace()),
		client.UnsafeDisableDeepCopy); err != nil {
		return decision, fmt.Errorf("listing ResourceBindings: %w", err)
	}
	used := make(map[types.NamespacedName]corev1.ResourceList, len(list.Items))
	for i := range list.Items {
		used[client.ObjectKeyFromObject(&list.Items[i])] = quota.Usage(&list.Items[i].Spec, list.Items[i].Spec.Clusters)
	}
	spec := b.BindingSpec()
	err = s.quotas.Admit(limits, used, client.ObjectKeyFromObject(b), quota.Usage(spec, decision.clusters), s.now())
	if err == nil {
		return decision, nil
	}
	return outcome{
		clusters: spec.Clusters, term: termInUse(b),
		reason: workv1alpha2.ReasonQuotaExceeded, message: shorten(err.Error()),
	}, nil
}

// limits of a namespace; objects without one have none.
func (s *scheduling) limits(ctx context.Context, namespace string) ([]quota.Limit, error) {
	if namespace == "" {
		return nil, nil
	}
	var list policyv1alpha1.FederatedResourceQuotaList
	if err := s.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing FederatedResourceQuotas: %w", err)
	}
	var limits []quota.Limit
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			limits = append(limits, quota.Limit{
				Name: namespace + "/" + list.Items[i].Name, Hard: list.Items[i].Spec.Overall,
			})
		}
	}
	return limits, nil
}
