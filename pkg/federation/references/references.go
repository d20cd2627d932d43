// Package references tells which objects another one takes along to its clusters: what it refers to, and what its
// annotation lists. The bindings of those objects list it in spec.requiredBy; what they hold there follows from it as
// well.
package references

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
)

// Annotation of an object lists, as JSON, what follows it besides what it refers to: [{"apiVersion": "v1", "kind":
// "Service", "labelSelector": {"matchLabels": {"app": "shop"}}}]. Each entry has either a name or a selector, and means
// objects of the namespace that the annotated object is in. This is an extension of the published API.
const Annotation = "federation.trellis.garden/dependencies"

// Source tells what an object refers to.
type Source interface {
	Dependencies(ctx context.Context,
		object *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
}

// Reference is one that was understood.
type Reference struct {
	schema.GroupVersionKind
	types.NamespacedName
	// Labels is nil if there is a name.
	Labels labels.Selector
}

// Matches tells whether an object of a kind is meant.
func (r Reference) Matches(gvk schema.GroupVersionKind, object *unstructured.Unstructured) bool {
	if r.GroupVersionKind != gvk || r.Namespace != object.GetNamespace() {
		return false
	}
	if r.Labels != nil {
		return r.Labels.Matches(labels.Set(object.GetLabels()))
	}
	return r.Name == object.GetName()
}

// Of gives what an object refers to. An error that wraps [ErrWrong] is one of what is written in the object. One that
// wraps [ErrElsewhere] names references that are not followed, and comes with all others.
func Of(ctx context.Context, source Source, object *unstructured.Unstructured) ([]Reference, error) {
	found, err := source.Dependencies(ctx, object)
	if err != nil {
		return nil, err
	}
	references, err := understand(found, object)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrong, err)
	}
	return within(object.GetNamespace(), references)
}

// ErrWrong is wrapped by errors that do not pass before the object changes.
var ErrWrong = errors.New("references cannot be understood")

// ErrElsewhere is wrapped by errors about objects that an object of a namespace does not take along. Its author may not
// be allowed to read them in the fleet, or to create them in a member.
var ErrElsewhere = errors.New("an object of a namespace takes along objects of that namespace only")

// within takes out what is elsewhere. Cluster-wide objects, which only administrators write, may take along any.
func within(namespace string, all []Reference) ([]Reference, error) {
	if namespace == "" {
		return all, nil
	}
	var followed []Reference
	var left []string
	for _, r := range all {
		if r.Namespace == namespace {
			followed = append(followed, r)
		} else {
			left = append(left, fmt.Sprintf("%s %q of namespace %q", r.Kind, r.Name, r.Namespace))
		}
	}
	if len(left) == 0 {
		return followed, nil
	}
	return followed, fmt.Errorf("%w, %s; not %s", ErrElsewhere, namespace,
		strings.Join(left[:min(len(left), mostNamed)], ", "))
}

// mostNamed is how many references an error names.
const mostNamed = 5

// Find gives the objects that are meant.
func Find(ctx context.Context, reader client.Reader, r Reference) ([]*unstructured.Unstructured, error) {
	if r.Labels == nil {
		object, err := bindings.GetTemplate(ctx, reader,
			bindings.TemplateKey{GroupVersionKind: r.GroupVersionKind, NamespacedName: r.NamespacedName})
		if err != nil || object == nil {
			return nil, err
		}
		return []*unstructured.Unstructured{object}, nil
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(r.GroupVersion().WithKind(r.Kind + "List"))
	err := reader.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingLabelsSelector{Selector: r.Labels})
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing dependencies of kind %s: %w", r.Kind, err)
	}
	var result []*unstructured.Unstructured
	for i := range list.Items {
		// Of a cluster-wide kind, caches list all.
		if list.Items[i].GetNamespace() == r.Namespace {
			result = append(result, &list.Items[i])
		}
	}
	return result, nil
}

// understand checks references, those that the source found and those of the object's annotation.
func understand(found []configv1alpha1.DependentObjectReference,
	object *unstructured.Unstructured) ([]Reference, error) {
	more, err := annotated(object)
	if err != nil {
		return nil, err
	}
	result := make([]Reference, 0, len(found)+len(more))
	for _, r := range append(found, more...) {
		understood := Reference{
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
			if understood.Labels, err = metav1.LabelSelectorAsSelector(r.LabelSelector); err != nil {
				return nil, fmt.Errorf("dependency of kind %s: labelSelector: %w", r.Kind, err)
			}
		}
		result = append(result, understood)
	}
	return result, nil
}

// annotated gives what the annotation lists. It cannot name other namespaces: who may write an object may not be
// allowed to read Secrets elsewhere.
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
			return nil, fmt.Errorf("annotation %s: entry %d: namespace must be that of the object, %q", Annotation, i,
				object.GetNamespace())
		}
		references[i].Namespace = object.GetNamespace()
	}
	return references, nil
}
