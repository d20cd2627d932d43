package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/extensions/federation/pkg/apis"
)

// explainDecoding names the field for which a provider configuration could not be decoded. The decoder doesn't: a
// quantity or a duration that it cannot understand has no name in its errors.
func explainDecoding(raw []byte, path *field.Path, err error) error {
	var document map[string]any
	if yaml.UnmarshalStrict(raw, &document) == nil {
		if wrong := wrongField(document, path, func(part map[string]any) map[string]any { return part }); wrong != nil {
			return wrong
		}
	}
	return fmt.Errorf("%s: %w", path, err)
}

// wrongField finds the first field, by name, that cannot be decoded when it is there alone; nil if there is none. Part
// of a document is decoded within the document that whole makes of it.
func wrongField(document map[string]any, path *field.Path, whole func(map[string]any) map[string]any) *field.Error {
	for _, name := range slices.Sorted(maps.Keys(document)) {
		alone := func(value any) map[string]any { return whole(map[string]any{name: value}) }
		value, at := document[name], path.Child(name)
		if decodes(alone(nil)) != nil {
			return field.Forbidden(at, "there is no such field")
		}
		err := decodes(alone(value))
		if err == nil {
			continue
		}
		fields, isObject := value.(map[string]any)
		if !isObject || decodes(alone(map[string]any{})) != nil {
			return field.Invalid(at, value, whyNotDecoded(err))
		}
		return wrongField(fields, at, func(part map[string]any) map[string]any { return alone(part) })
	}
	return nil
}

// decodes tells why a document cannot be decoded.
func decodes(document map[string]any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(text, &apis.FleetConfig{})
}

// whyNotDecoded says it without the names that types have in Go.
func whyNotDecoded(err error) string {
	if mismatch := new(json.UnmarshalTypeError); errors.As(err, &mismatch) {
		if mismatch.Type.Kind() == reflect.Struct {
			return "must be an object, not " + mismatch.Value
		}
		return fmt.Sprintf("must be of type %s, not %s", mismatch.Type, mismatch.Value)
	}
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(err) {
		err = cause
	}
	return err.Error()
}
