package strictyaml

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// firstWrong finds the first part of a value that cannot be decoded when it is there alone; nil if there is none. The
// decoder doesn't name it: a quantity or a duration that it cannot understand has no path in its errors. alone decodes
// a document that has only the given value at the path.
func firstWrong(value any, path *field.Path, alone func(any) error) *field.Error {
	err := alone(value)
	if err == nil {
		return nil
	}
	var wrong *field.Error
	switch parts := value.(type) {
	case map[string]any:
		wrong, value = firstWrongField(parts, path, alone), field.OmitValueType{}
	case []any:
		wrong, value = firstWrongItem(parts, path, alone), field.OmitValueType{}
	}
	if wrong != nil {
		return wrong
	}
	return field.Invalid(path, value, whyNotDecoded(err))
}

func firstWrongField(fields map[string]any, path *field.Path, alone func(any) error) *field.Error {
	if alone(map[string]any{}) != nil {
		return nil // no object belongs there
	}
	child := path.Child
	if takesAnyName(alone) {
		child = func(name string, _ ...string) *field.Path { return path.Key(name) }
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field := func(value any) error { return alone(map[string]any{name: value}) }
		if unknown(field(nil), name) {
			return forbidden(child(name))
		}
		if wrong := firstWrong(fields[name], child(name), field); wrong != nil {
			return wrong
		}
	}
	return nil
}

func firstWrongItem(items []any, path *field.Path, alone func(any) error) *field.Error {
	if alone([]any{}) != nil {
		return nil // no list belongs there
	}
	for i, item := range items {
		wrong := firstWrong(item, path.Index(i), func(value any) error { return alone([]any{value}) })
		if wrong != nil {
			return wrong
		}
	}
	return nil
}

func forbidden(path *field.Path) *field.Error { return field.Forbidden(path, "there is no such field") }

// takesAnyName tells maps, of which no type knows the names.
func takesAnyName(alone func(any) error) bool {
	const name = "no field has this name"
	return !unknown(alone(map[string]any{name: nil}), name)
}

// unknown tells whether the decoder does not know a field. It has no type for this error.
func unknown(err error, name string) bool {
	return err != nil && strings.HasSuffix(err.Error(), fmt.Sprintf("json: unknown field %q", name))
}

// decodes tells why a document cannot be decoded as a type.
func decodes(document any, into reflect.Type) error {
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(text, reflect.New(into).Interface())
}

// exactNumbers has a decoder keep numbers as they are written.
func exactNumbers(decoder *json.Decoder) *json.Decoder {
	decoder.UseNumber()
	return decoder
}

// whyNotDecoded says it without the names that types have in Go.
func whyNotDecoded(err error) string {
	if mismatch := new(json.UnmarshalTypeError); errors.As(err, &mismatch) {
		switch mismatch.Type.Kind() {
		case reflect.Struct, reflect.Map:
			return "must be an object, not " + mismatch.Value
		case reflect.Slice:
			return "must be a list, not " + mismatch.Value
		}
		return fmt.Sprintf("must be of type %s, not %s", mismatch.Type, mismatch.Value)
	}
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(err) {
		err = cause
	}
	return err.Error()
}
