package registry

import (
	"context"
	"fmt"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Stores holds the stores of all kinds. Other parts of the server read objects through it without a detour over HTTP.
type Stores map[schema.GroupResource]*genericregistry.Store

// Get returns one object. Namespace is empty for objects of the garden.
func (s Stores) Get(ctx context.Context, resource schema.GroupResource, namespace, name string) (runtime.Object, error) {
	store, err := s.store(resource)
	if err != nil {
		return nil, err
	}
	return store.Get(request.WithNamespace(ctx, namespace), name, &metav1.GetOptions{})
}

// List returns the selected objects of a namespace, or of all namespaces.
func (s Stores) List(ctx context.Context, resource schema.GroupResource, namespace string, selector fields.Selector) (runtime.Object, error) {
	store, err := s.store(resource)
	if err != nil {
		return nil, err
	}
	return store.List(request.WithNamespace(ctx, namespace), &metainternalversion.ListOptions{FieldSelector: selector})
}

func (s Stores) store(resource schema.GroupResource) (*genericregistry.Store, error) {
	store, ok := s[resource]
	if !ok {
		return nil, fmt.Errorf("%s are not stored here", resource)
	}
	return store, nil
}

// Build makes the storage of all kinds: what is served, by group version and path, and the stores below.
func Build(scheme *runtime.Scheme, getter generic.RESTOptionsGetter, kinds []Served) (map[schema.GroupVersion]map[string]rest.Storage, Stores, error) {
	served := map[schema.GroupVersion]map[string]rest.Storage{}
	stores := Stores{}
	for _, kind := range kinds {
		paths, store, err := kind.Storage(scheme, getter)
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
