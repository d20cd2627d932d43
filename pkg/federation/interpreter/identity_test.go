package interpreter

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/identity"
)

// hostile rules answer every question about an object with the same one.
type hostile struct {
	Rules
	answer *unstructured.Unstructured
}

func (h hostile) RulesFor(schema.GroupVersionKind, configv1alpha1.InterpreterOperation) Rules {
	return h
}

func (h hostile) Revise(context.Context, *unstructured.Unstructured, int32) (*unstructured.Unstructured, error) {
	return h.answer, nil
}

func (h hostile) Prune(context.Context, *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return h.answer, nil
}

func (h hostile) Retain(context.Context, *unstructured.Unstructured,
	*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return h.answer, nil
}

func TestAttackInterpreterAnswersWithAnotherObject(t *testing.T) {
	object := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, data: {c: d}}`)
	observed := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, finalizers: [x]}}`)
	tests := map[string]struct {
		answer         string
		good, retained bool
	}{
		"content": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, labels: {e: f}}, data: {c: g}}`, true,
			true,
		},
		"what the member has": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, finalizers: [x]}}`, false, true,
		},
		"kind": {
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a}}`, false, false,
		},
		"namespace": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}`, false, false,
		},
		"owners": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, ownerReferences: [{name: x}]}}`, false,
			false,
		},
		"fleet's annotation": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, annotations: {work.karmada.io/name: x}}}`, false, false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			i := New()
			i.SetSources(hostile{answer: parse(t, tc.answer)})
			check := func(operation string, good bool, err error) {
				if good && err != nil || !good && !errors.Is(err, identity.ErrChanged) {
					t.Errorf("%s: %v", operation, err)
				}
			}
			_, err := i.Revise(t.Context(), object, 1)
			check("Revise", tc.good, err)
			_, err = i.Prune(t.Context(), object)
			check("Prune", tc.good, err)
			_, err = i.Retain(t.Context(), object, observed)
			check("Retain", tc.retained, err)
		})
	}
}
