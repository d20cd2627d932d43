package plan

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/federation/bindings"
)

// An object that a change rebalances and changes as well is both, whichever document comes first.
func TestAnObjectMayBeChangedAndRebalanced(t *testing.T) {
	deployment := Proposal{Action: ActionUpdate, Now: web("web", 1), Then: web("web", 2)}
	again := Proposal{Action: ActionCreate, Then: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer",
		"metadata": map[string]any{"name": "again"},
		"spec": map[string]any{
			"workloads": []any{
				map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"},
			},
		},
	}}}
	for name, proposals := range map[string][]Proposal{
		"changed first": {deployment, again}, "rebalanced first": {again, deployment},
	} {
		t.Run(name, func(t *testing.T) {
			c := &concerned{
				reader: fake.NewClientBuilder().WithObjects(web("web", 1)).Build(), in: &Input{},
				proposals: slices.Clone(proposals),
				lists:     map[kindIn][]*unstructured.Unstructured{},
				byKey:     map[bindings.TemplateKey]*unstructured.Unstructured{},
			}
			found, err := c.find(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != 1 || !found[0].Rebalanced || found[0].Now != deployment.Now ||
				found[0].Then != deployment.Then {
				t.Errorf("got %+v", found)
			}
		})
	}
}
