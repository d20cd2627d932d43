package plan

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// standIn is the namespace in which the fleet's API checks objects of namespaces that there are not yet: a dry run
// makes none.
const standIn = metav1.NamespaceDefault

// checker tries what documents say in the fleet's API.
type checker struct {
	client.Client
	// namespace of objects that name none.
	namespace string
	deleting  bool
	// made has the namespaces that the documents themselves make.
	made map[string]bool
}

func newChecker(c client.Client, documents []Written, namespace string, deleting bool) *checker {
	made := map[string]bool{}
	for _, d := range documents {
		if !deleting && d.Object.GetAPIVersion() == "v1" && d.Object.GetKind() == "Namespace" {
			made[d.Object.GetName()] = true
		}
	}
	// Strict as kubectl.
	return &checker{
		Client: client.WithFieldValidation(c, metav1.FieldValidationStrict), namespace: namespace, deleting: deleting,
		made: made,
	}
}

// create has the API check and complete an object that there is not. If its namespace is to come with it, that is done
// as if in another one.
func (c *checker) create(ctx context.Context, object *unstructured.Unstructured) error {
	err := c.Create(ctx, object, client.DryRunAll)
	if !isNoNamespace(err) || !c.made[object.GetNamespace()] {
		return err
	}
	namespace, name := object.GetNamespace(), object.GetName()
	moveTo(object, namespace, standIn)
	err = c.Create(ctx, object, client.DryRunAll)
	if apierrors.IsAlreadyExists(err) {
		object.SetName("")
		object.SetGenerateName(name[:min(len(name), maxPrefix)] + "-")
		err = c.Create(ctx, object, client.DryRunAll)
		object.SetGenerateName("")
		object.SetName(name)
	}
	moveTo(object, standIn, namespace)
	if err != nil {
		return fmt.Errorf("(tried in namespace %s, as %s is to be made by these documents) %w", standIn, namespace, err)
	}
	return nil
}

// maxPrefix leaves room for what the API appends to generated names, also where a name is a label.
const maxPrefix = 56

func isNoNamespace(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil &&
		status.Status().Details.Kind == "namespaces"
}

// moveTo has an object be in another namespace. What it says of the two namespaces itself, in a policy's selectors,
// changes places.
func moveTo(object *unstructured.Unstructured, from, to string) {
	object.SetNamespace(to)
	selectors, _, _ := unstructured.NestedSlice(object.Object, "spec", "resourceSelectors")
	if !isPolicy(object, "PropagationPolicy", "OverridePolicy") || len(selectors) == 0 {
		return
	}
	for _, s := range selectors {
		selector, _ := s.(map[string]any)
		switch selector["namespace"] {
		case from:
			selector["namespace"] = to
		case to:
			selector["namespace"] = from
		}
	}
	_ = unstructured.SetNestedSlice(object.Object, selectors, "spec", "resourceSelectors")
}
