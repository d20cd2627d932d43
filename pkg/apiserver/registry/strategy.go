package registry

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// strategy is what the generic store asks about a kind when an object is created, updated or deleted.
type strategy[T Object] struct {
	runtime.ObjectTyper
	names.NameGenerator
	kind *Kind[T]
}

var _ interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
	rest.RESTDeleteStrategy
	rest.ResetFieldsStrategy
} = strategy[Object]{}

func newStrategy[T Object](typer runtime.ObjectTyper, kind *Kind[T]) strategy[T] {
	return strategy[T]{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, kind: kind}
}

func (s strategy[T]) NamespaceScoped() bool           { return s.kind.Namespaced }
func (s strategy[T]) AllowCreateOnUpdate() bool       { return false }
func (s strategy[T]) AllowUnconditionalUpdate() bool  { return false }
func (s strategy[T]) Canonicalize(obj runtime.Object) { call(s.kind.Canonicalize, obj.(T)) }

func (s strategy[T]) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	object := obj.(T)
	if s.kind.CopyStatus != nil {
		s.kind.CopyStatus(object, s.kind.New())
	}
	if s.kind.Spec != nil {
		object.SetGeneration(1)
	}
	if s.kind.PrepareForCreate != nil {
		s.kind.PrepareForCreate(ctx, object)
	}
}

func (s strategy[T]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	object, before := obj.(T), old.(T)
	if s.kind.CopyStatus != nil {
		s.kind.CopyStatus(object, before)
	}
	if s.kind.PrepareForUpdate != nil {
		s.kind.PrepareForUpdate(ctx, object, before)
	}
	s.kind.setGeneration(object, before)
}

// setGeneration counts the changes that controllers have to act on.
func (k *Kind[T]) setGeneration(object, before T) {
	if k.Spec == nil {
		return
	}
	changed := func(object, before T) bool {
		return !apiequality.Semantic.DeepEqual(k.Spec(object), k.Spec(before))
	}
	if k.NeedsNewGeneration != nil {
		changed = k.NeedsNewGeneration
	}
	object.SetGeneration(before.GetGeneration())
	if changed(object, before) {
		object.SetGeneration(before.GetGeneration() + 1)
	}
}

func (s strategy[T]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	if errs := gardencorev1beta1.ValidateLengths(obj); len(errs) > 0 || s.kind.Validate == nil {
		return firstOf(errs)
	}
	return firstOf(s.kind.Validate(obj.(T)))
}

func (s strategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validateUpdate(s.kind.ValidateUpdate, obj, old)
}

// validateUpdate bounds the size of an object, then checks its change.
func validateUpdate[T Object](validate func(obj, old T) field.ErrorList, obj, old runtime.Object) field.ErrorList {
	if errs := gardencorev1beta1.ValidateLengths(obj); len(errs) > 0 || validate == nil {
		return firstOf(errs)
	}
	return firstOf(validate(obj.(T), old.(T)))
}

func (s strategy[T]) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return s.kind.warnings(obj)
}

func (s strategy[T]) WarningsOnUpdate(_ context.Context, obj, _ runtime.Object) []string {
	return s.kind.warnings(obj)
}

func (k *Kind[T]) warnings(obj runtime.Object) []string {
	if k.Warnings == nil {
		return nil
	}
	return k.Warnings(obj.(T))
}

// GetResetFields keeps server-side apply from owning the status through the main resource.
func (s strategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	if s.kind.CopyStatus == nil {
		return nil
	}
	return s.kind.fields("status")
}

func (k *Kind[T]) fields(names ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, name := range names {
		set.Insert(fieldpath.MakePathOrDie(name))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(k.Version.String()): set}
}

// maxErrors is the most errors that an answer lists: nobody reads more, and writing a hundred thousand down takes long.
const maxErrors = 100

func firstOf(errs field.ErrorList) field.ErrorList {
	if len(errs) <= maxErrors {
		return errs
	}
	more := &field.Error{
		Type: field.ErrorTypeForbidden, Field: errs[maxErrors].Field,
		Detail: fmt.Sprintf("%d more errors from here on are not listed; correct the others first",
			len(errs)-maxErrors),
	}
	return append(errs[:maxErrors:maxErrors], more)
}

// statusStrategy accepts changes of the status and of metadata only.
type statusStrategy[T Object] struct{ strategy[T] }

func (s statusStrategy[T]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	object, before := obj.(T), old.(T)
	s.kind.CopySpec(object, before)
	object.SetGeneration(before.GetGeneration())
	if s.kind.PrepareForStatusUpdate != nil {
		s.kind.PrepareForStatusUpdate(object, before)
	}
}

func (s statusStrategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validateUpdate(s.kind.ValidateStatusUpdate, obj, old)
}

func (s statusStrategy[T]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (s statusStrategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.kind.fields("spec")
}

// subresourceStrategy accepts what the subresource is for.
type subresourceStrategy[T Object] struct {
	strategy[T]
	subresource Subresource[T]
}

func (s subresourceStrategy[T]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	object, before := obj.(T), old.(T)
	s.subresource.Restrict(object, before)
	s.kind.setGeneration(object, before)
}

func (s subresourceStrategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validateUpdate(s.subresource.Validate, obj, old)
}

func call[T any](f func(T), argument T) {
	if f != nil {
		f(argument)
	}
}
