package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Stores holds the stores of all kinds. Other parts of the server read objects through it without a detour over HTTP.
type Stores map[schema.GroupResource]*genericregistry.Store

// Get returns one object. Namespace is empty for objects of the garden. What the watch cache holds is answered from
// there, without asking etcd, and may be milliseconds old; what it does not hold is asked of etcd, so that what
// somebody has just created is found. The object is the caller's own.
func (s Stores) Get(ctx context.Context, resource schema.GroupResource,
	namespace, name string) (runtime.Object, error) {
	store, err := s.store(resource)
	if err != nil {
		return nil, err
	}
	ctx = apirequest.WithNamespace(ctx, namespace)
	object, err := store.Get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		return store.Get(ctx, name, &metav1.GetOptions{})
	}
	if err != nil {
		return nil, err
	}
	return object.DeepCopyObject(), nil // The cache's parts are shared.
}

// List returns the selected objects of a namespace, or of all namespaces.
func (s Stores) List(ctx context.Context, resource schema.GroupResource, namespace string,
	selector fields.Selector) (runtime.Object, error) {
	store, err := s.store(resource)
	if err != nil {
		return nil, err
	}
	return store.List(apirequest.WithNamespace(ctx, namespace),
		&metainternalversion.ListOptions{FieldSelector: selector})
}

func (s Stores) store(resource schema.GroupResource) (*genericregistry.Store, error) {
	store, ok := s[resource]
	if !ok {
		return nil, fmt.Errorf("%s are not stored here", resource)
	}
	return store, nil
}

// Build makes the storage of all kinds: what is served, by group version and path, and the stores below. The authorizer
// tells who sees all objects of kinds with readers.
func Build(scheme *runtime.Scheme, getter generic.RESTOptionsGetter, rights authorizer.Authorizer,
	kinds []Served) (map[schema.GroupVersion]map[string]rest.Storage, Stores, error) {
	served := map[schema.GroupVersion]map[string]rest.Storage{}
	stores := Stores{}
	for _, kind := range kinds {
		paths, store, err := kind.Storage(scheme, getter, rights)
		if err != nil {
			return nil, nil, err
		}
		stores[kind.GroupResource()] = store
		if served[kind.GroupVersion()] == nil {
			served[kind.GroupVersion()] = map[string]rest.Storage{}
		}
		for path, storage := range paths {
			served[kind.GroupVersion()][path] = storage
		}
	}
	return served, stores, nil
}
