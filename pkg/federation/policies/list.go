package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
)

// KindIndex is the name of the index of policies by the kinds that they select; [IndexKinds] makes it.
const KindIndex = "selectedKinds"

// IndexKinds gives the kinds that a policy selects, for an index of a cache.
func IndexKinds(object client.Object) []string {
	policy, ok := Of(object)
	if !ok {
		return nil
	}
	var kinds []string
	for kind := range policy.Kinds() {
		kinds = append(kinds, kind.String())
	}
	return kinds
}

// List gives the policies of both scopes that are not being deleted.
func List(ctx context.Context, reader client.Reader, options ...client.ListOption) ([]Policy, error) {
	return list(ctx, reader, options, options)
}

// ListFor gives those that may be about an object: of its namespace, or cluster-wide, and of its kind. The reader has
// to have the [KindIndex]; the policies are its own and must not be changed.
func ListFor(ctx context.Context, reader client.Reader, object *unstructured.Unstructured) ([]Policy, error) {
	ofKind := []client.ListOption{
		client.MatchingFields{KindIndex: object.GroupVersionKind().String()}, client.UnsafeDisableDeepCopy,
	}
	if object.GetNamespace() == "" {
		return list(ctx, reader, nil, ofKind)
	}
	return list(ctx, reader, append(slices.Clone(ofKind), client.InNamespace(object.GetNamespace())), ofKind)
}

// list with options for each scope; nil leaves the namespaced ones out.
func list(ctx context.Context, reader client.Reader,
	forNamespaced, forClusterWide []client.ListOption) ([]Policy, error) {
	var namespaced policyv1alpha1.PropagationPolicyList
	var clusterWide policyv1alpha1.ClusterPropagationPolicyList
	if err := reader.List(ctx, &clusterWide, forClusterWide...); err != nil {
		return nil, fmt.Errorf("listing ClusterPropagationPolicies: %w", err)
	}
	if forNamespaced != nil || forClusterWide == nil {
		if err := reader.List(ctx, &namespaced, forNamespaced...); err != nil {
			return nil, fmt.Errorf("listing PropagationPolicies: %w", err)
		}
	}
	var result []Policy
	for i := range namespaced.Items {
		result = append(result, Policy{&namespaced.Items[i], &namespaced.Items[i].Spec})
	}
	for i := range clusterWide.Items {
		result = append(result, Policy{&clusterWide.Items[i], &clusterWide.Items[i].Spec})
	}
	return slices.DeleteFunc(result, func(p Policy) bool { return p.GetDeletionTimestamp() != nil }), nil
}

// maxPlacement bounds, in bytes, what every binding of a policy holds a copy of.
const maxPlacement = 64 << 10

// Refusal says why a policy cannot be acted upon, which its schema cannot say; nil if it can.
func (p Policy) Refusal() error {
	text, err := json.Marshal(p.Spec.Placement)
	if err != nil {
		return fmt.Errorf("%s: spec.placement: %w", p, err)
	}
	if len(text) > maxPlacement {
		return fmt.Errorf("%s: spec.placement has %d bytes, of which every binding would hold a copy; use at most "+
			"%d, e.g. by selecting clusters by a label of theirs",
			p, len(text), maxPlacement)
	}
	return nil
}
