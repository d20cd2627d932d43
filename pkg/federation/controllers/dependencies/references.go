package dependencies

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
)

// Annotation of an object lists, as JSON, what follows it besides what it refers to: [{"apiVersion": "v1", "kind": "Service",
// "labelSelector": {"matchLabels": {"app": "shop"}}}]. Each entry has either a name or a selector, and means objects of the
// namespace that the annotated object is in. This is an extension of the published API.
const Annotation = "federation.trellis.garden/dependencies"

// Source tells what an object refers to.
type Source interface {
	Dependencies(ctx context.Context, object *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
}

// reference is one that was understood.
type reference struct {
	schema.GroupVersionKind
	types.NamespacedName
	// labels is nil if there is a name.
	labels labels.Selector
}

// matches tells whether an object of a kind is meant.
func (r reference) matches(gvk schema.GroupVersionKind, object *unstructured.Unstructured) bool {
	if r.GroupVersionKind != gvk || r.Namespace != object.GetNamespace() {
		return false
	}
	if r.labels != nil {
		return r.labels.Matches(labels.Set(object.GetLabels()))
	}
	return r.Name == object.GetName()
}

// understand checks references, those that the source found and those of the object's annotation.
func understand(found []configv1alpha1.DependentObjectReference, object *unstructured.Unstructured) ([]reference, error) {
	more, err := annotated(object)
	if err != nil {
		return nil, err
	}
	result := make([]reference, 0, len(found)+len(more))
	for _, r := range append(found, more...) {
		understood := reference{
			GroupVersionKind: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind),
			NamespacedName:   types.NamespacedName{Namespace: r.Namespace, Name: r.Name},
		}
		switch {
		case r.APIVersion == "" || r.Kind == "":
			return nil, fmt.Errorf("dependency %s/%s: apiVersion and kind must be given", r.Namespace, r.Name)
		case r.Name != "":
		case r.LabelSelector == nil:
			return nil, fmt.Errorf("dependency of kind %s: give a name or a labelSelector", r.Kind)
		default:
			if understood.labels, err = metav1.LabelSelectorAsSelector(r.LabelSelector); err != nil {
				return nil, fmt.Errorf("dependency of kind %s: labelSelector: %w", r.Kind, err)
			}
		}
		result = append(result, understood)
	}
	return result, nil
}

// annotated gives what the annotation lists. It cannot name other namespaces: who may write an object may not be allowed to read
// Secrets elsewhere.
func annotated(object *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	text, found := object.GetAnnotations()[Annotation]
	if !found {
		return nil, nil
	}
	var references []configv1alpha1.DependentObjectReference
	if err := json.Unmarshal([]byte(text), &references); err != nil {
		return nil, fmt.Errorf("annotation %s: want a JSON list of references: %w", Annotation, err)
	}
	for i := range references {
		if references[i].Namespace != "" && references[i].Namespace != object.GetNamespace() {
			return nil, fmt.Errorf("annotation %s: entry %d: namespace must be that of the object, %q", Annotation, i, object.GetNamespace())
		}
		references[i].Namespace = object.GetNamespace()
	}
	return references, nil
}
