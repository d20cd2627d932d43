package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/policies"
)

// isThere is false for an object that goes away.
func isThere(template *unstructured.Unstructured) bool {
	return template != nil && template.GetDeletionTimestamp() == nil
}

// isRequired tells whether other bindings need the object of this one in their clusters.
func isRequired(existing bindings.Binding) bool {
	return existing != nil && existing.GetDeletionTimestamp() == nil && len(existing.BindingSpec().RequiredBy) > 0
}

// keepRequired has a binding that no policy is responsible for any more follow those that need it, and nothing else.
// What it takes over from them is written by controllers/dependencies.
func (p *propagation) keepRequired(ctx context.Context, template *unstructured.Unstructured,
	existing bindings.Binding) error {
	updated := existing.DeepCopyObject().(bindings.Binding)
	policies.RemoveClaims(updated)
	spec := updated.BindingSpec()
	*spec = workv1alpha2.ResourceBindingSpec{
		Resource: bindings.ReferenceTo(template), RequiredBy: spec.RequiredBy,
		ConflictResolution: spec.ConflictResolution, PreserveResourcesOnDeletion: spec.PreserveResourcesOnDeletion,
		Suspension: spec.Suspension,
	}
	wants, err := policies.Ask(ctx, p.interpreter, template)
	if err != nil {
		return p.refuse(template, err)
	}
	wants.Fill(spec)
	return p.update(ctx, existing, updated)
}
