package controllers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/policies"
)

// claimOnly has a lazy policy wait for a change of the object. A binding that doesn't exist yet is made without a
// placement, so that nothing is sent anywhere.
func (p *propagation) claimOnly(ctx context.Context, template *unstructured.Unstructured, policy *policies.Policy,
	existing bindings.Binding, content string) error {
	if existing != nil {
		updated := existing.DeepCopyObject().(bindings.Binding)
		policy.Claim(updated)
		policies.MarkActivation(updated, *policy, content)
		return p.update(ctx, existing, updated)
	}
	created := bindings.NewFor(template)
	policy.Claim(created)
	policies.MarkActivation(created, *policy, content)
	if err := p.client.Create(ctx, created); err != nil {
		return fmt.Errorf("creating binding %s: %w", client.ObjectKeyFromObject(created), err)
	}
	return nil
}
