package plan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// Proposal is a document with the object that there is and the one that would be.
type Proposal struct {
	Action Action
	// Now and Then are nil if there is no such object before, or after.
	Now, Then *unstructured.Unstructured
}

// object is the one that would be, or else the one that there is.
func (p *Proposal) object() *unstructured.Unstructured {
	if p.Then != nil {
		return p.Then
	}
	return p.Now
}

func (p *Proposal) document() Document {
	object := p.object()
	return Document{Action: p.Action, APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
}

// Parse reads YAML or JSON with any number of documents; lists count as their items. An error names the document by its position.
func Parse(reader io.Reader) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(reader, 4096)
	var result []*unstructured.Unstructured
	for n := 1; ; n++ {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return result, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		items, err := itemsOf(object)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		result = append(result, items...)
	}
}

// itemsOf gives the object itself unless it is a list.
func itemsOf(object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if !object.IsList() {
		return []*unstructured.Unstructured{object}, checkIdentity(object)
	}
	list, err := object.ToList()
	if err != nil {
		return nil, err
	}
	var result []*unstructured.Unstructured
	for i := range list.Items {
		if err := checkIdentity(&list.Items[i]); err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		result = append(result, &list.Items[i])
	}
	return result, nil
}

func checkIdentity(object *unstructured.Unstructured) error {
	for field, value := range map[string]string{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind()} {
		if value == "" {
			return fmt.Errorf("%s: must be given", field)
		}
	}
	if object.GetName() == "" {
		return errors.New("metadata.name: must be given")
	}
	switch object.GroupVersionKind().Group {
	case workv1alpha2.GroupVersion.Group, configv1alpha1.GroupVersion.Group:
		return fmt.Errorf("%s %s: a plan is about policies, quotas, clusters, rebalancers and the objects that are propagated, not about %s",
			object.GetKind(), object.GetName(), object.GetAPIVersion())
	}
	return nil
}

// Check has the fleet's API default and validate what would be applied, or, if deleting, finds what would be deleted. Nothing is changed.
// Objects without a namespace whose kind has one get the namespace given.
func Check(ctx context.Context, c client.Client, objects []*unstructured.Unstructured, namespace string, deleting bool) ([]Proposal, error) {
	c = client.WithFieldValidation(c, metav1.FieldValidationStrict) // As kubectl does.
	var result []Proposal
	for _, object := range objects {
		proposal, err := check(ctx, c, object.DeepCopy(), namespace, deleting)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), explained(err))
		}
		result = append(result, proposal)
	}
	return result, nil
}

// explained adds what to do about it.
func explained(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; a plan has the fleet check documents by a dry run, for which one must be allowed to apply them", err)
	}
	return err
}

func check(ctx context.Context, c client.Client, object *unstructured.Unstructured, namespace string, deleting bool) (Proposal, error) {
	namespaced, err := c.IsObjectNamespaced(object)
	if err != nil {
		return Proposal{}, err
	}
	switch {
	case !namespaced:
		object.SetNamespace("")
	case object.GetNamespace() == "":
		object.SetNamespace(namespace)
	}
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(object.GroupVersionKind())
	err = c.Get(ctx, client.ObjectKeyFromObject(object), now)
	switch {
	case apierrors.IsNotFound(err) && deleting:
		return Proposal{}, errors.New("there is no such object to delete")
	case apierrors.IsNotFound(err):
		return Proposal{Action: ActionCreate, Then: object}, c.Create(ctx, object, client.DryRunAll)
	case err != nil:
		return Proposal{}, err
	case deleting:
		return Proposal{Action: ActionDelete, Now: now}, nil
	}
	if object.GroupVersionKind().Group == policyv1alpha1.GroupVersion.Group {
		err = replace(ctx, c, object, now)
	} else {
		err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"), client.ForceOwnership, client.DryRunAll)
	}
	action := ActionUpdate
	if err == nil && sameContent(now, object) {
		action = ActionUnchanged
	}
	return Proposal{Action: action, Now: now, Then: object}, err
}

// replace tries the spec that was written in place of the present one. Labels and annotations that it doesn't name stay.
func replace(ctx context.Context, c client.Client, object, now *unstructured.Unstructured) error {
	labels, annotations := now.GetLabels(), now.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(labels, object.GetLabels())
	maps.Copy(annotations, object.GetAnnotations())
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
	object.SetResourceVersion(now.GetResourceVersion())
	object.SetUID(now.GetUID())
	object.SetFinalizers(now.GetFinalizers())
	object.SetOwnerReferences(now.GetOwnerReferences())
	return c.Update(ctx, object, client.DryRunAll)
}

// sameContent ignores what the API server keeps about an object.
func sameContent(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(contentOf(a), contentOf(b))
}

func contentOf(object *unstructured.Unstructured) map[string]any {
	content := map[string]any{"labels": noNil(object.GetLabels()), "annotations": noNil(object.GetAnnotations())}
	for field, value := range object.Object {
		if field != "metadata" && field != "status" {
			content["."+field] = value
		}
	}
	return content
}

func noNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// isPolicy tells whether the object is of one of the kinds, all of the policy API.
func isPolicy(object *unstructured.Unstructured, kinds ...string) bool {
	gvk := object.GroupVersionKind()
	return gvk.Group == policyv1alpha1.GroupVersion.Group && strings.Contains(" "+strings.Join(kinds, " ")+" ", " "+gvk.Kind+" ")
}
