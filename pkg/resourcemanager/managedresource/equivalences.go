package managedresource

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

// Equivalences are sets of kinds that a server stores as one.
type Equivalences [][]metav1.GroupKind

// wellKnownEquivalences are kinds that moved between groups of Kubernetes itself.
var wellKnownEquivalences = Equivalences{
	{{Group: "extensions", Kind: "Ingress"}, {Group: "networking.k8s.io", Kind: "Ingress"}},
	{{Group: "", Kind: "Event"}, {Group: "events.k8s.io", Kind: "Event"}},
	{{Group: "policy", Kind: "PodSecurityPolicy"}, {Group: "extensions", Kind: "PodSecurityPolicy"}},
}

// identities returns the identity of ref under every equivalent kind, its own included.
func (e Equivalences) identities(ref resourcesv1alpha1.ObjectReference) []string {
	own := ref.GroupVersionKind().GroupKind()
	ids := []string{identity(ref)}
	for _, set := range append(e[:len(e):len(e)], wellKnownEquivalences...) {
		if !contains(set, own) {
			continue
		}
		for _, gk := range set {
			other := ref
			other.APIVersion = schema.GroupVersion{Group: gk.Group, Version: ref.GroupVersionKind().Version}.String()
			other.Kind = gk.Kind
			ids = append(ids, identity(other))
		}
	}
	return ids
}

// contains says whether the set has the kind.
func contains(set []metav1.GroupKind, gk schema.GroupKind) bool {
	for _, candidate := range set {
		if candidate.Group == gk.Group && candidate.Kind == gk.Kind {
			return true
		}
	}
	return false
}
