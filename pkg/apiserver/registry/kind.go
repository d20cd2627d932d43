// Package registry stores and serves the kinds of the garden's API.
//
// Every kind is one entry of a table (see Kind): what it is called, what kubectl prints, how it is prepared and
// validated, and which fields can be selected. One generic strategy and one store builder serve all of them; what is
// special about a kind stays in its own small file.
package registry

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Object is what can be stored: a pointer to an API type with object metadata.
type Object interface {
	runtime.Object
	metav1.Object
}

// Kind describes how the objects of one kind are stored and served. Only New, NewList, the names and the version are
// required; every function may be nil.
type Kind[T Object] struct {
	// Version is the group and version that clients see and etcd stores.
	Version schema.GroupVersion
	// Plural and Singular are the resource's names, in lower case.
	Plural, Singular string
	// Namespaced tells objects of a namespace from those of the garden.
	Namespaced bool
	// ShortNames and Categories are what kubectl accepts instead of the plural.
	ShortNames, Categories []string

	// New and NewList return empty objects.
	New     func() T
	NewList func() runtime.Object

	// Spec returns the part of the object whose change makes a new generation. Nil: the kind has no generation.
	Spec func(T) any
	// CopySpec and CopyStatus keep one half of an object when the other is written. CopyStatus also decides whether
	// the kind has a status subresource.
	CopySpec, CopyStatus func(to, from T)

	// Columns are printed by kubectl after the name and before the age.
	Columns []Column[T]
	// Fields can be used in field selectors, besides metadata.name and metadata.namespace.
	Fields map[string]func(T) string
	// Index names the field by which watchers are told apart in the watch cache.
	Index string

	// Readers lets everybody list and watch the objects of which they are among the readers, and nothing of others. Who
	// has a right to list the kind for another reason than being authenticated sees all. Nil: RBAC decides alone.
	Readers func(T) []rbacv1.Subject

	// PrepareForCreate and PrepareForUpdate normalise an object before validation.
	PrepareForCreate func(ctx context.Context, obj T)
	PrepareForUpdate func(ctx context.Context, obj, old T)
	// PrepareForStatusUpdate is PrepareForUpdate of the status subresource.
	PrepareForStatusUpdate func(obj, old T)
	// Canonicalize runs after validation of every write.
	Canonicalize func(T)

	// NeedsNewGeneration replaces the rule that a change of the spec makes a new generation. It is asked once per write
	// and may take away what did nothing but ask for a new generation.
	NeedsNewGeneration func(obj, old T) bool

	Validate             func(T) field.ErrorList
	ValidateUpdate       func(obj, old T) field.ErrorList
	ValidateStatusUpdate func(obj, old T) field.ErrorList
	// Warnings tells a client what it should change although it was accepted.
	Warnings func(T) []string

	// Subresources are served besides status. They write the object itself.
	Subresources map[string]Subresource[T]
}

// Subresource lets clients write one aspect of an object, and nothing else of it.
type Subresource[T Object] struct {
	// Restrict resets what the subresource must not change, and prepares what it may.
	Restrict func(obj, old T)
	Validate func(obj, old T) field.ErrorList
}

// Column is one column of kubectl get.
type Column[T Object] struct {
	Name string
	// Type is an OpenAPI type: string, integer or date. Empty means string.
	Type        string
	Description string
	// Wide columns appear only with -o wide.
	Wide bool
	Cell func(T) any
}

// GroupResource returns the resource of the kind.
func (k *Kind[T]) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Version.Group, Resource: k.Plural}
}
