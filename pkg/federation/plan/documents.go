package plan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// Written is an object as somebody wrote it.
type Written struct {
	Object *unstructured.Unstructured
	// Where it was written, such as "policy.yaml, document 2"; errors begin with it. Empty if it wasn't read from a
	// file.
	Where string
}

// String names it in errors.
func (w Written) String() string {
	name := documentOf("", w.Object).String()
	if w.Where == "" {
		return name
	}
	return w.Where + ": " + name
}

// Proposal is a document with the object that there is and the one that would be.
type Proposal struct {
	Action Action
	// Now and Then are nil if there is no such object before, or after.
	Now, Then *unstructured.Unstructured
	// Where it was written, see Written.
	Where string
}

// String names the proposal in errors.
func (p *Proposal) String() string { return Written{p.object(), p.Where}.String() }

// object is the one that would be, or else the one that there is.
func (p *Proposal) object() *unstructured.Unstructured {
	if p.Then != nil {
		return p.Then
	}
	return p.Now
}

func (p *Proposal) document() Document { return documentOf(p.Action, p.object()) }

func documentOf(action Action, object *unstructured.Unstructured) Document {
	return Document{
		Action: action, APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(),
		Name: object.GetName(),
	}
}

// Parse reads YAML or JSON with any number of documents; lists count as their items. An error names the file, the
// position of the document among those that are not empty, and as much of its kind and name as is known.
func Parse(reader io.Reader, file string) ([]Written, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(reader, 4096)
	var result []Written
	for n := 1; ; n++ {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return result, nil
		}
		where := fmt.Sprintf("%s, document %d", file, n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, undecodable(err))
		}
		if len(object.Object) == 0 {
			n--
			continue
		}
		items, err := itemsOf(Written{object, where})
		if err != nil {
			return nil, err
		}
		result = append(result, items...)
	}
}

// notAnObject is what the decoder says of a document that isn't an object, and the type that it is of.
var notAnObject = regexp.MustCompile(`cannot unmarshal (\w+) into Go value of type map`)

// undecodable says in the words of people who write files what is wrong with one.
func undecodable(err error) error {
	if match := notAnObject.FindStringSubmatch(err.Error()); match != nil {
		return fmt.Errorf("it is no object but of type %s; it must have apiVersion, kind and metadata", match[1])
	}
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: ")
	if strings.HasPrefix(text, "line ") {
		text += " (lines are those of the document)"
	}
	return errors.New("cannot be read: " + text)
}

// itemsOf gives the object itself unless it is a list.
func itemsOf(w Written) ([]Written, error) {
	if !w.Object.IsList() {
		return []Written{w}, w.checkIdentity()
	}
	list, err := w.Object.ToList()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.Where, err)
	}
	var result []Written
	for i := range list.Items {
		item := Written{&list.Items[i], fmt.Sprintf("%s, items[%d]", w.Where, i)}
		if err := item.checkIdentity(); err != nil {
			return nil, err
		}
		result = append(result, item)
	}
	return result, nil
}

func (w Written) checkIdentity() error {
	object := w.Object
	switch {
	case object.GetKind() == "":
		return fmt.Errorf("%s: kind: must be given", w.Where)
	case object.GetName() == "":
		return fmt.Errorf("%s: %s: metadata.name: must be given", w.Where, object.GetKind())
	case object.GetAPIVersion() == "":
		return fmt.Errorf("%s: apiVersion: must be given", w)
	}
	switch object.GroupVersionKind().Group {
	case workv1alpha2.GroupVersion.Group, configv1alpha1.GroupVersion.Group:
		return fmt.Errorf("%s: a plan is about policies, quotas, clusters, rebalancers and the objects that are "+
			"propagated, not about %s",
			w, object.GetAPIVersion())
	}
	return nil
}

// Check has the fleet's API default and validate what would be applied, or, if deleting, finds what would be deleted.
// Nothing is changed. Objects without a namespace whose kind has one get the namespace given. The error tells of all
// documents that are refused.
func Check(ctx context.Context, c client.Client, documents []Written, namespace string,
	deleting bool) ([]Proposal, error) {
	checker := newChecker(c, documents, namespace, deleting)
	var result []Proposal
	var refusals []error
	for _, d := range documents {
		d.Object = d.Object.DeepCopy()
		proposal, err := checker.check(ctx, d.Object)
		if err == nil {
			proposal.Where = d.Where
			result = append(result, proposal)
			continue
		}
		refusal, refused := refusalOf(err, c.RESTMapper(), d.Object)
		refusals = append(refusals, fmt.Errorf("%s: %w", d, refusal))
		if !refused { // The next one would fare no better.
			break
		}
	}
	return result, errors.Join(refusals...)
}

func (c *checker) check(ctx context.Context, object *unstructured.Unstructured) (Proposal, error) {
	namespaced, err := c.IsObjectNamespaced(object)
	if err != nil {
		return Proposal{}, err
	}
	switch {
	case !namespaced:
		object.SetNamespace("")
	case object.GetNamespace() == "":
		object.SetNamespace(c.namespace)
	}
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(object.GroupVersionKind())
	err = c.Get(ctx, client.ObjectKeyFromObject(object), now)
	switch {
	case apierrors.IsNotFound(err) && c.deleting:
		return Proposal{}, refused{err, "there is no such object to delete"}
	case apierrors.IsNotFound(err):
		return Proposal{Action: ActionCreate, Then: object}, c.create(ctx, object)
	case err != nil:
		return Proposal{}, err
	case c.deleting:
		return Proposal{Action: ActionDelete, Now: now}, nil
	}
	if object.GroupVersionKind().Group == policyv1alpha1.GroupVersion.Group {
		err = replace(ctx, c, object, now)
	} else {
		// As the user's kubectl would, so that conflicts and defaults are those that they will meet.
		err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"),
			client.ForceOwnership, client.DryRunAll)
	}
	action := ActionUpdate
	if err == nil && sameContent(now, object) {
		action = ActionUnchanged
	}
	return Proposal{Action: action, Now: now, Then: object}, err
}

// replace tries the spec that was written in place of the present one. Labels and annotations that it doesn't name
// stay.
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
	return apiequality.Semantic.DeepEqual(contentOf(a), contentOf(b))
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
	return gvk.Group == policyv1alpha1.GroupVersion.Group &&
		strings.Contains(" "+strings.Join(kinds, " ")+" ", " "+gvk.Kind+" ")
}
