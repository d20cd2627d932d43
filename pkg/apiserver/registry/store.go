package registry

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Served is one kind, whatever its type: what the server needs of it to store and serve it.
type Served interface {
	// GroupVersion is the version under which the kind is served.
	GroupVersion() schema.GroupVersion
	// GroupResource names the kind's resource.
	GroupResource() schema.GroupResource
	// RegisterFieldLabels tells the scheme which fields clients may select.
	RegisterFieldLabels(scheme *runtime.Scheme) error
	// Storage returns what is served under the resource's path and its subresources' paths, and the store below. The
	// authorizer tells who sees all objects of kinds with readers.
	Storage(scheme *runtime.Scheme, getter generic.RESTOptionsGetter,
		rights authorizer.Authorizer) (map[string]rest.Storage, *genericregistry.Store, error)
}

// GroupVersion implements Served.
func (k *Kind[T]) GroupVersion() schema.GroupVersion { return k.Version }

// RegisterFieldLabels implements Served.
func (k *Kind[T]) RegisterFieldLabels(scheme *runtime.Scheme) error {
	gvks, _, err := scheme.ObjectKinds(k.New())
	if err != nil {
		return err
	}
	return scheme.AddFieldLabelConversionFunc(k.Version.WithKind(gvks[0].Kind),
		func(label, value string) (string, string, error) {
			if _, ok := k.Fields[label]; ok || label == "metadata.name" || label == "metadata.namespace" {
				return label, value, nil
			}
			return "", "", fmt.Errorf("%s cannot be selected by field %q", k.Plural, label)
		})
}

// Storage implements Served.
func (k *Kind[T]) Storage(scheme *runtime.Scheme, getter generic.RESTOptionsGetter,
	rights authorizer.Authorizer) (map[string]rest.Storage, *genericregistry.Store, error) {
	main := newStrategy(scheme, k)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return k.New() },
		NewListFunc:               k.NewList,
		DefaultQualifiedResource:  k.GroupResource(),
		SingularQualifiedResource: schema.GroupResource{Group: k.Version.Group, Resource: k.Singular},
		PredicateFunc:             k.predicate,
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            table[T]{k},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{
		RESTOptions: getter,
		AttrFunc:    k.attributes,
		TriggerFunc: k.triggers(),
		Indexers:    k.indexers(),
	}); err != nil {
		return nil, nil, fmt.Errorf("store of %s: %w", k.GroupResource(), err)
	}
	served := map[string]rest.Storage{k.Plural: k.main(store, rights)}
	if k.CopyStatus != nil {
		served[k.Plural+"/status"] = newSubresourceREST(store, statusStrategy[T]{main})
	}
	for name, subresource := range k.Subresources {
		served[k.Plural+"/"+name] = newSubresourceREST(store, subresourceStrategy[T]{main, subresource})
	}
	return served, store, nil
}

// main serves the objects themselves.
func (k *Kind[T]) main(store *genericregistry.Store, rights authorizer.Authorizer) rest.Storage {
	main := &resourceREST{Store: store, shortNames: k.ShortNames, categories: k.Categories}
	if k.Readers == nil {
		return main
	}
	return &readersREST{resourceREST: main, resource: k.GroupResource(), authorizer: rights}
}

// attributes returns the labels and selectable fields of an object.
func (k *Kind[T]) attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	object, ok := obj.(T)
	if !ok {
		return nil, nil, fmt.Errorf("a %T is not one of %s", obj, k.Plural)
	}
	set := fields.Set{"metadata.name": object.GetName()}
	if k.Namespaced {
		set["metadata.namespace"] = object.GetNamespace()
	}
	for name, value := range k.Fields {
		set[name] = value(object)
	}
	if k.Readers != nil {
		set[readersField] = readersOf(k.Readers(object))
	}
	return labels.Set(object.GetLabels()), set, nil
}

func (k *Kind[T]) predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	predicate := storage.SelectionPredicate{Label: label, Field: field, GetAttrs: k.attributes}
	if k.Index != "" {
		predicate.IndexFields = []string{k.Index}
	}
	return predicate
}

func (k *Kind[T]) triggers() storage.IndexerFuncs {
	if k.Index == "" {
		return nil
	}
	value := k.Fields[k.Index]
	return storage.IndexerFuncs{k.Index: func(obj runtime.Object) string { return value(obj.(T)) }}
}

func (k *Kind[T]) indexers() *toolscache.Indexers {
	if k.Index == "" {
		return nil
	}
	value := k.Fields[k.Index]
	return &toolscache.Indexers{storage.FieldIndex(k.Index): func(obj any) ([]string, error) {
		object, ok := obj.(T)
		if !ok {
			return nil, fmt.Errorf("a %T is not one of %s", obj, k.Plural)
		}
		return []string{value(object)}, nil
	}}
}

// resourceREST is the store with the names that kubectl accepts.
type resourceREST struct {
	*genericregistry.Store
	shortNames, categories []string
}

var (
	_ rest.StandardStorage    = &resourceREST{}
	_ rest.StandardStorage    = &readersREST{}
	_ rest.ShortNamesProvider = &resourceREST{}
	_ rest.CategoriesProvider = &resourceREST{}
)

// ShortNames implements rest.ShortNamesProvider.
func (r *resourceREST) ShortNames() []string { return r.shortNames }

// Categories implements rest.CategoriesProvider.
func (r *resourceREST) Categories() []string { return r.categories }

// updateStrategy is what a subresource of the object itself needs.
type updateStrategy interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}

// subresourceREST reads and updates the objects of a store under a strategy of its own.
type subresourceREST struct {
	store    *genericregistry.Store
	strategy updateStrategy
}

var (
	_ rest.Patcher             = &subresourceREST{}
	_ rest.ResetFieldsStrategy = &subresourceREST{}
)

func newSubresourceREST(store *genericregistry.Store, strategy updateStrategy) *subresourceREST {
	own := *store
	own.UpdateStrategy = strategy
	own.ResetFieldsStrategy = strategy
	return &subresourceREST{store: &own, strategy: strategy}
}

// New implements rest.Storage.
func (r *subresourceREST) New() runtime.Object { return r.store.New() }

// Destroy implements rest.Storage; the store belongs to the main resource.
func (r *subresourceREST) Destroy() {}

// Get implements rest.Getter.
func (r *subresourceREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update implements rest.Updater. Subresources never create an object.
func (r *subresourceREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, _ bool,
	options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, info, createValidation, updateValidation, false, options)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (r *subresourceREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.strategy.GetResetFields()
}

// ConvertToTable implements rest.TableConvertor.
func (r *subresourceREST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, options)
}
