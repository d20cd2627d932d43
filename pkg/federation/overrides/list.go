package overrides

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
)

// List gives the policies that may concern an object of the namespace; of a cluster-wide object if that is empty.
func List(ctx context.Context, reader client.Reader, namespace string, options ...client.ListOption) ([]Policy, error) {
	var clusterWide policyv1alpha1.ClusterOverridePolicyList
	if err := reader.List(ctx, &clusterWide, options...); err != nil {
		return nil, fmt.Errorf("listing ClusterOverridePolicies: %w", err)
	}
	var result []Policy
	for i := range clusterWide.Items {
		result = append(result, Policy{Name: clusterWide.Items[i].Name, Spec: &clusterWide.Items[i].Spec})
	}
	if namespace == "" {
		return result, nil
	}
	var namespaced policyv1alpha1.OverridePolicyList
	if err := reader.List(ctx, &namespaced, append(options, client.InNamespace(namespace))...); err != nil {
		return nil, fmt.Errorf("listing OverridePolicies: %w", err)
	}
	for i := range namespaced.Items {
		result = append(result, Policy{
			Namespace: namespace, Name: namespaced.Items[i].Name, Spec: &namespaced.Items[i].Spec,
		})
	}
	return result, nil
}
