package policies

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
)

// ActivatedTemplateAnnotation, on the binding of a policy with activationPreference Lazy, identifies the content of the
// object that the policy took effect for last. The policy waits for another content.
const ActivatedTemplateAnnotation = "policy.trellis.garden/activated-template"

// Activation says what a policy may do to a binding now.
type Activation int

const (
	// ActivateAll: the policy takes effect.
	ActivateAll Activation = iota
	// ActivateClaim: the object is the policy's, but nothing changes until the object does.
	ActivateClaim
)

// ActivationOf decides for lazy policies; others always take effect. A lazy policy takes effect for objects that are
// younger than it is, and whenever an object changes.
func ActivationOf(policy Policy, template *unstructured.Unstructured, existing bindings.Binding,
	content string) Activation {
	switch {
	case policy.Spec.ActivationPreference != policyv1alpha1.LazyActivation:
		return ActivateAll
	case existing == nil || !IsClaimed(existing):
		created, since := template.GetCreationTimestamp(), policy.GetCreationTimestamp()
		if created.Before(&since) {
			return ActivateClaim
		}
		return ActivateAll
	}
	recorded := existing.GetAnnotations()[ActivatedTemplateAnnotation]
	if recorded == "" || recorded == content {
		return ActivateClaim
	}
	return ActivateAll
}

// ContentOf identifies what people wrote of an object: neither its status nor what the API server keeps counts.
func ContentOf(template *unstructured.Unstructured) (string, error) {
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

// MarkActivation notes on the binding of a lazy policy which content of the object it is about.
func MarkActivation(b bindings.Binding, policy Policy, content string) {
	if policy.Spec.ActivationPreference == policyv1alpha1.LazyActivation {
		bindings.SetAnnotation(b, ActivatedTemplateAnnotation, content)
	} else {
		bindings.RemoveMarks(b, ActivatedTemplateAnnotation)
	}
}
