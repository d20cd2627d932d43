// Package controllers runs a fleet: it turns policies and objects into bindings, decides where they go, writes Works
// for the member clusters, applies these there, and brings the status back.
//
//	policy + object ──propagation──▶ binding ──scheduling──▶ binding.spec.clusters
//	       ▲                                                        │ works
//	       │ status                                                 ▼
//	       └──────────── binding.status ◀──────────── Work ◀──execution──▶ member
//
// Every step reads what it needs from the fleet's API and can be repeated, so that the process may die at any point.
// What is still to be removed is held by finalizers: a member's object by its Work, Works by their binding, and
// everything in a member by its Cluster.
package controllers

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// fieldManager owns in members what the fleet wants there.
const fieldManager = "trellis-federation"

// binding is a ResourceBinding or a ClusterResourceBinding. All controllers treat both alike; a key without a
// namespace stands for the latter.
type binding interface {
	client.Object
	BindingSpec() *workv1alpha2.ResourceBindingSpec
	BindingStatus() *workv1alpha2.ResourceBindingStatus
}

func newBinding(key types.NamespacedName) binding {
	if key.Namespace == "" {
		b := &workv1alpha2.ClusterResourceBinding{}
		b.Name = key.Name
		return b
	}
	b := &workv1alpha2.ResourceBinding{}
	b.Namespace, b.Name = key.Namespace, key.Name
	return b
}

// getBinding gives nil if there is none. The result is the caller's own.
func getBinding(ctx context.Context, reader client.Reader, key types.NamespacedName) (binding, error) {
	b := newBinding(key)
	err := reader.Get(ctx, key, b)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading binding %s: %w", key, err)
	}
	return b, nil
}

// listBindings of both kinds.
func listBindings(ctx context.Context, reader client.Reader, options ...client.ListOption) ([]binding, error) {
	var namespaced workv1alpha2.ResourceBindingList
	var clusterWide workv1alpha2.ClusterResourceBindingList
	if err := reader.List(ctx, &namespaced, options...); err != nil {
		return nil, fmt.Errorf("listing ResourceBindings: %w", err)
	}
	if err := reader.List(ctx, &clusterWide, options...); err != nil {
		return nil, fmt.Errorf("listing ClusterResourceBindings: %w", err)
	}
	result := make([]binding, 0, len(namespaced.Items)+len(clusterWide.Items))
	for i := range namespaced.Items {
		result = append(result, &namespaced.Items[i])
	}
	for i := range clusterWide.Items {
		result = append(result, &clusterWide.Items[i])
	}
	return result, nil
}

// bindingName is that of the binding of an object.
func bindingName(name, kind string) string {
	return strings.ReplaceAll(strings.ToLower(name+"-"+kind), ":", ".")
}

// permanentIDLabel is the label that ties Works to a binding of that namespace.
func permanentIDLabel(namespace string) string {
	if namespace == "" {
		return workv1alpha2.ClusterPermanentIDLabel
	}
	return workv1alpha2.PermanentIDLabel
}

func bindingFinalizer(namespace string) string {
	if namespace == "" {
		return workv1alpha2.ClusterFinalizer
	}
	return workv1alpha2.Finalizer
}

// bindingOf tells the binding that a Work was made from; false for Works that people wrote themselves.
func bindingOf(work *workv1alpha1.Work) (types.NamespacedName, bool) {
	annotations := work.GetAnnotations()
	if name := annotations[workv1alpha2.ClusterNameAnnotation]; name != "" {
		return types.NamespacedName{Name: name}, true
	}
	key := types.NamespacedName{Namespace: annotations[workv1alpha2.NamespaceAnnotation], Name: annotations[workv1alpha2.NameAnnotation]}
	return key, key.Namespace != "" && key.Name != ""
}

// clusterOf tells the member that the Works of a namespace are for.
func clusterOf(namespace string) (string, bool) {
	return strings.CutPrefix(namespace, clusterv1alpha1.ExecutionNamespacePrefix)
}

// templateKey tells an object of the fleet.
type templateKey struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// String is for logs.
func (k templateKey) String() string { return k.Kind + " " + k.NamespacedName.String() }

func templateKeyOf(object client.Object, gvk schema.GroupVersionKind) templateKey {
	return templateKey{gvk, client.ObjectKeyFromObject(object)}
}

func templateKeyOfBinding(b binding) templateKey {
	resource := b.BindingSpec().Resource
	return templateKey{
		schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind),
		types.NamespacedName{Namespace: resource.Namespace, Name: resource.Name},
	}
}

// getTemplate gives nil if the object, or its kind, doesn't exist. The result is the caller's own.
func getTemplate(ctx context.Context, reader client.Reader, key templateKey) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(key.GroupVersionKind)
	err := reader.Get(ctx, key.NamespacedName, object)
	if apierrors.IsNotFound(err) || isNoMatch(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	return object, nil
}

func requestFor(object client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}
