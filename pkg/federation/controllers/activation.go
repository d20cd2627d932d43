package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
)

// activatedTemplateAnnotation, on the binding of a policy with activationPreference Lazy, identifies the content of the object that
// the policy took effect for last. The policy waits for another content.
const activatedTemplateAnnotation = "policy.trellis.garden/activated-template"

// activation says what a policy may do to a binding now.
type activation int

const (
	// activateAll: the policy takes effect.
	activateAll activation = iota
	// activateClaim: the object is the policy's, but nothing changes until the object does.
	activateClaim
)

// activationOf decides for lazy policies; others always take effect. A lazy policy takes effect for objects that are younger than it
// is, and whenever an object changes.
func activationOf(policy *propagationPolicy, template *unstructured.Unstructured, existing bindings.Binding, content string) activation {
	switch {
	case policy.spec.ActivationPreference != policyv1alpha1.LazyActivation:
		return activateAll
	case existing == nil || !isClaimed(existing):
		created, since := template.GetCreationTimestamp(), policy.GetCreationTimestamp()
		if created.Before(&since) {
			return activateClaim
		}
		return activateAll
	}
	recorded := existing.GetAnnotations()[activatedTemplateAnnotation]
	if recorded == "" || recorded == content {
		return activateClaim
	}
	return activateAll
}

// contentOf identifies what people wrote of an object: neither its status nor what the API server keeps counts.
func contentOf(template *unstructured.Unstructured) (string, error) {
	content := map[string]any{"labels": template.GetLabels(), "annotations": template.GetAnnotations()}
	for field, value := range template.Object {
		if field != "metadata" && field != "status" {
			content["."+field] = value
		}
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("encoding %s %s: %w", template.GetKind(), template.GetName(), err)
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:16]), nil
}

// markActivation notes on the binding of a lazy policy which content of the object it is about.
func markActivation(b bindings.Binding, policy *propagationPolicy, content string) {
	if policy.spec.ActivationPreference == policyv1alpha1.LazyActivation {
		bindings.SetAnnotation(b, activatedTemplateAnnotation, content)
	} else {
		bindings.RemoveMarks(b, activatedTemplateAnnotation)
	}
}

// claimOnly has a lazy policy wait for a change of the object. A binding that doesn't exist yet is made without a placement, so that
// nothing is sent anywhere.
func (p *propagation) claimOnly(ctx context.Context, template *unstructured.Unstructured, policy *propagationPolicy, existing bindings.Binding, content string) error {
	if existing != nil {
		updated := existing.DeepCopyObject().(bindings.Binding)
		policy.claim(updated)
		markActivation(updated, policy, content)
		return p.update(ctx, existing, updated)
	}
	created := bindings.NewFor(template)
	policy.claim(created)
	markActivation(created, policy, content)
	if err := p.client.Create(ctx, created); err != nil {
		return fmt.Errorf("creating binding %s: %w", client.ObjectKeyFromObject(created), err)
	}
	return nil
}
