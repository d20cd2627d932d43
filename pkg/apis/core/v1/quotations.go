package v1

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ResolveQuotations returns values whose strings hold what they quote of resources, as {{ .resources.<name>.data.<key>
// }}. What is quoted is not read again. Resources hold data by their names. Errors name the field of values.
func ResolveQuotations(values map[string]any, resources map[string]map[string]string) (map[string]any, error) {
	resolved, err := resolveValue(values, field.NewPath("values"), resources)
	if err != nil {
		return nil, err
	}
	object, _ := resolved.(map[string]any)
	return object, nil
}

func resolveValue(value any, path *field.Path, resources map[string]map[string]string) (any, error) {
	var err error
	switch v := value.(type) {
	case string:
		return resolveText(v, path, resources)
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			if items[i], err = resolveValue(item, path.Index(i), resources); err != nil {
				return nil, err
			}
		}
		return items, nil
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, item := range v {
			if object[key], err = resolveValue(item, path.Child(key), resources); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return value, nil
}

func resolveText(text string, path *field.Path, resources map[string]map[string]string) (string, error) {
	var failed error
	resolved := template.ReplaceAllStringFunc(text, func(found string) string {
		match := quotation.FindStringSubmatch(found)
		if match == nil || failed != nil {
			return found
		}
		value, has := resources[match[1]][match[2]]
		if !has {
			failed = fmt.Errorf("%s: resource %q has no key %q", path, match[1], match[2])
		}
		return value
	})
	return resolved, failed
}

// ValuesOf returns the values of a chart as an object, which may be empty.
func (h *HelmControllerDeployment) ValuesOf() (map[string]any, error) {
	values := map[string]any{}
	if h.Values == nil || len(h.Values.Raw) == 0 {
		return values, nil
	}
	if err := json.Unmarshal(h.Values.Raw, &values); err != nil {
		return nil, fmt.Errorf("values: must be a JSON object: %w", err)
	}
	return values, nil
}
