package v1beta1

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxItems is the most items of any list or map of an object: more than anybody needs, and few enough that an object of the largest
// size that is accepted is validated in a moment.
const MaxItems = 5000

// ValidateLengths refuses objects with a list or a map of more than MaxItems items. Other checks are meant for objects that passed it.
func ValidateLengths(object any) field.ErrorList {
	w := lengthsWalker{}
	w.walk(reflect.ValueOf(object), nil)
	return w.errs
}

// lengthsWalker goes through an object. It makes paths of fields only where there are lists, which saves most of the time.
// +k8s:openapi-gen=false
type lengthsWalker struct{ errs field.ErrorList }

func (w *lengthsWalker) walk(value reflect.Value, path *field.Path) {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() {
			w.walk(value.Elem(), path)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if f := value.Type().Field(i); f.IsExported() && mayHoldItems(f.Type) {
				w.walk(value.Field(i), childOf(path, f))
			}
		}
	case reflect.Slice:
		if w.isTooLong(value, path) || !mayHoldItems(value.Type().Elem()) {
			return
		}
		for i := range value.Len() {
			w.walk(value.Index(i), path.Index(i))
		}
	case reflect.Map:
		if w.isTooLong(value, path) || !mayHoldItems(value.Type().Elem()) {
			return
		}
		for entries := value.MapRange(); entries.Next(); {
			w.walk(entries.Value(), path.Key(entries.Key().String()))
		}
	}
}

func (w *lengthsWalker) isTooLong(value reflect.Value, path *field.Path) bool {
	isBytes := value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Uint8
	if isBytes || value.Len() <= MaxItems {
		return false
	}
	w.errs = append(w.errs, field.TooMany(path, value.Len(), MaxItems))
	return true
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
