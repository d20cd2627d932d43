// Package bindings reads ResourceBindings and ClusterResourceBindings alike, and tells which object, Works and labels
// belong to one.
package bindings

import (
	"context"
	"fmt"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// Binding is a ResourceBinding or a ClusterResourceBinding. All controllers treat both alike; a key without a
// namespace stands for the latter.
type Binding interface {
	client.Object
	BindingSpec() *workv1alpha2.ResourceBindingSpec
	BindingStatus() *workv1alpha2.ResourceBindingStatus
}

// New gives an empty binding of that key.
func New(key types.NamespacedName) Binding {
	if key.Namespace == "" {
		b := &workv1alpha2.ClusterResourceBinding{}
		b.Name = key.Name
		return b
	}
	b := &workv1alpha2.ResourceBinding{}
	b.Namespace, b.Name = key.Namespace, key.Name
	return b
}

// Get gives nil if there is none. The result is the caller's own.
func Get(ctx context.Context, reader client.Reader, key types.NamespacedName) (Binding, error) {
	b := New(key)
	err := reader.Get(ctx, key, b)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading binding %s: %w", key, err)
	}
	return b, nil
}

// List gives the bindings of both kinds.
func List(ctx context.Context, reader client.Reader, options ...client.ListOption) ([]Binding, error) {
	var namespaced workv1alpha2.ResourceBindingList
	var clusterWide workv1alpha2.ClusterResourceBindingList
	if err := reader.List(ctx, &namespaced, options...); err != nil {
		return nil, fmt.Errorf("listing ResourceBindings: %w", err)
	}
	if err := reader.List(ctx, &clusterWide, options...); err != nil {
		return nil, fmt.Errorf("listing ClusterResourceBindings: %w", err)
	}
	result := make([]Binding, 0, len(namespaced.Items)+len(clusterWide.Items))
	for i := range namespaced.Items {
		result = append(result, &namespaced.Items[i])
	}
	for i := range clusterWide.Items {
		result = append(result, &clusterWide.Items[i])
	}
	return result, nil
}

// Name is that of the binding of an object.
func Name(name, kind string) string {
	return strings.ReplaceAll(strings.ToLower(name+"-"+kind), ":", ".")
}

// PermanentIDLabel is the label that ties Works to a binding of that namespace.
func PermanentIDLabel(namespace string) string {
	if namespace == "" {
		return workv1alpha2.ClusterPermanentIDLabel
	}
	return workv1alpha2.PermanentIDLabel
}

// Finalizer keeps a binding of that namespace until its Works are gone.
func Finalizer(namespace string) string {
	if namespace == "" {
		return workv1alpha2.ClusterFinalizer
	}
	return workv1alpha2.Finalizer
}

// OfWork tells the binding that a Work was made from; false for Works that people wrote themselves.
func OfWork(work *workv1alpha1.Work) (types.NamespacedName, bool) {
	annotations := work.GetAnnotations()
	if name := annotations[workv1alpha2.ClusterNameAnnotation]; name != "" {
		return types.NamespacedName{Name: name}, true
	}
	key := types.NamespacedName{
		Namespace: annotations[workv1alpha2.NamespaceAnnotation], Name: annotations[workv1alpha2.NameAnnotation],
	}
	return key, key.Namespace != "" && key.Name != ""
}

// TemplateKey tells an object of the fleet.
type TemplateKey struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// String is for logs.
func (k TemplateKey) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.NamespacedName.String()
}

// TemplateKeyOf an object of that kind.
func TemplateKeyOf(object client.Object, gvk schema.GroupVersionKind) TemplateKey {
	return TemplateKey{gvk, client.ObjectKeyFromObject(object)}
}

// TemplateOf is the object that a binding is for. It is in the namespace of the binding, whatever that says: who may
// write there may not be allowed to read elsewhere.
func TemplateOf(b Binding) TemplateKey {
	resource := b.BindingSpec().Resource
	return TemplateKey{
		schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind),
		types.NamespacedName{Namespace: b.GetNamespace(), Name: resource.Name},
	}
}

// GetTemplate gives nil if the object, or its kind, doesn't exist. One of a cluster-wide kind is not there with a
// namespace. The result is the caller's own.
func GetTemplate(ctx context.Context, reader client.Reader, key TemplateKey) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(key.GroupVersionKind)
	err := reader.Get(ctx, key.NamespacedName, object)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	// Caches leave the namespace out of account for such kinds.
	if object.GetNamespace() != key.Namespace {
		return nil, nil
	}
	return object, nil
}

// PatchStatus writes the status of after if it differs from that of before; it fails with a conflict when somebody else
// wrote in between.
func PatchStatus(ctx context.Context, c client.Client, before, after Binding) error {
	if apiequality.Semantic.DeepEqual(before.BindingStatus(), after.BindingStatus()) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, after, patch); err != nil {
		return fmt.Errorf("writing the status of binding %s: %w", client.ObjectKeyFromObject(after), err)
	}
	return nil
}
