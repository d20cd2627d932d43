package v1beta1

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxItems is the most items of any list or map of an object: more than anybody needs, and few enough that an object of
// the largest size that is accepted is validated in a moment.
const MaxItems = 5000

// MaxMergedItems is the same for lists that patches merge item by item, which takes the square of their number.
const MaxMergedItems = 1000

// ValidateLengths refuses objects with a list or a map of more than MaxItems items, or with a list that is merged item
// by item of more than MaxMergedItems. Other checks are meant for objects that passed it.
func ValidateLengths(object any) field.ErrorList {
	w := lengthsWalker{}
	w.walk(reflect.ValueOf(object), nil, MaxItems)
	return w.errs
}

// lengthsWalker goes through an object. It makes paths of fields only where there are lists, which saves most of the
// time.
// +k8s:openapi-gen=false
type lengthsWalker struct{ errs field.ErrorList }

// walk goes through a value that may have so many items.
func (w *lengthsWalker) walk(value reflect.Value, path *field.Path, limit int) {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() {
			w.walk(value.Elem(), path, limit)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if f := value.Type().Field(i); f.IsExported() && mayHoldItems(f.Type) {
				w.walk(value.Field(i), childOf(path, f), limitOf(f))
			}
		}
	case reflect.Slice:
		if w.isTooLong(value, path, limit) || !mayHoldItems(value.Type().Elem()) {
			return
		}
		for i := range value.Len() {
			w.walk(value.Index(i), path.Index(i), MaxItems)
		}
	case reflect.Map:
		if w.isTooLong(value, path, limit) || !mayHoldItems(value.Type().Elem()) {
			return
		}
		for entries := value.MapRange(); entries.Next(); {
			w.walk(entries.Value(), path.Key(entries.Key().String()), MaxItems)
		}
	}
}

func (w *lengthsWalker) isTooLong(value reflect.Value, path *field.Path, limit int) bool {
	isBytes := value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Uint8
	if isBytes || value.Len() <= limit {
		return false
	}
	w.errs = append(w.errs, field.TooMany(path, value.Len(), limit))
	return true
}

// limitOf returns how many items a field may have.
func limitOf(f reflect.StructField) int {
	if f.Tag.Get("patchMergeKey") != "" {
		return MaxMergedItems
	}
	return MaxItems
}

// mayHoldItems tells whether a value of a type can be, or contain, a list or a map.
func mayHoldItems(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Slice, reflect.Map, reflect.Interface:
		return true
	case reflect.Pointer:
		return mayHoldItems(t.Elem())
	}
	return false
}

func childOf(path *field.Path, f reflect.StructField) *field.Path {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return path // inlined
	}
	if path == nil {
		return field.NewPath(name)
	}
	return path.Child(name)
}
