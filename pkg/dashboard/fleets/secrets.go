package fleets

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// hidden stands for a value that reaches no page. It is the same for all: what tells values apart could be used to
// guess them.
const hidden = "(hidden)"

// concealed is what pages see of a field of an object, which of Secrets is all but their values. The path is a JSON
// Pointer; empty for the whole object.
func concealed(kind, path string, value any) any {
	if kind != "Secret" {
		return value
	}
	var at []string
	if path != "" {
		at = strings.Split(strings.TrimPrefix(path, "/"), "/")
		for i := range at {
			at[i] = strings.ReplaceAll(strings.ReplaceAll(at[i], "~1", "/"), "~0", "~")
		}
	}
	return conceal(at, value)
}

func conceal(at []string, value any) any {
	if value == nil {
		return nil
	}
	object, isObject := value.(map[string]any)
	switch {
	case isObject:
		result := make(map[string]any, len(object))
		for name, field := range object {
			result[name] = conceal(append(slices.Clip(at), name), field)
		}
		return result
	case isValue(at):
		return hidden
	}
	return value
}

// isValue tells of the fields that have values, or repeat them.
func isValue(at []string) bool {
	return len(at) > 0 && (at[0] == "data" || at[0] == "stringData") ||
		len(at) > 2 && at[0] == "metadata" && at[1] == "annotations" && at[2] == corev1.LastAppliedConfigAnnotation
}
