// Package strictyaml decodes configurations: unknown fields are refused, and errors name the field that is wrong. What
// the values mean is checked by those who read them.
package strictyaml

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// Unmarshal decodes YAML or JSON into what a pointer points to. The error names the first field, by name, that is
// unknown or has a value that cannot be decoded. The path, which may be nil, is where the text is in what the user
// wrote.
func Unmarshal(text []byte, into any, path *field.Path) error {
	err := yaml.UnmarshalStrict(text, into)
	if err == nil {
		return nil
	}
	var document any
	if yaml.UnmarshalStrict(text, &document, exactNumbers) != nil {
		return within(path, err)
	}
	wrong := firstWrong(document, path, func(part any) error { return decodes(part, reflect.TypeOf(into).Elem()) })
	if wrong == nil {
		return within(path, err)
	}
	if wrong.Field == path.String() {
		return within(path, errors.New(wrong.Detail))
	}
	return wrong
}

func within(path *field.Path, err error) error {
	if path == nil {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}
