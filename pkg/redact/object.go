package redact

import "strings"

// dropped are fields of metadata that hold copies of others, or say nothing to people.
var dropped = []string{"managedFields", "selfLink"}

// Object returns a copy of an object of an API without secrets: without what Secrets hold, without fields and variables
// that are called like secrets, without files for machines and the state that extensions keep, which may have keys in
// it, and without copies of all this in annotations. What is left of texts is that of Text.
func Object(object map[string]any) map[string]any {
	result, ok := walk(object).(map[string]any)
	if !ok {
		return map[string]any{"kind": object["kind"], "removed": Removed}
	}
	if version, _ := object["apiVersion"].(string); strings.HasPrefix(version, "extensions.gardener.cloud/") {
		if status, ok := result["status"].(map[string]any); ok && status["state"] != nil {
			status["state"] = Removed
		}
	}
	return result
}

func walk(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		return walkMap(typed)
	case []any:
		return walkList(typed)
	case string:
		return Text(typed)
	}
	return value
}

func walkMap(fields map[string]any) any {
	if holdsSecret(fields) {
		return Removed
	}
	result := make(map[string]any, len(fields))
	for name, value := range fields {
		switch {
		case name == "metadata":
			result[name] = metadata(value)
		case name == "inline":
			// Contents of files for machines: extensions' OperatingSystemConfigs.
			result[name] = Removed
		case Name(name) && !composed(value):
			result[name] = Removed
		default:
			result[name] = walk(value)
		}
	}
	// Variables of containers, headers of probes.
	if name, ok := fields["name"].(string); ok && Name(name) {
		if _, ok := fields["value"].(string); ok {
			result["value"] = Removed
		}
	}
	return result
}

// holdsSecret says whether this is a Secret, and not a reference to one.
func holdsSecret(fields map[string]any) bool {
	kind, _ := fields["kind"].(string)
	switch strings.TrimSuffix(kind, "List") {
	case "Secret", "InternalSecret", "ShootState":
		for _, name := range []string{"data", "stringData", "metadata", "items", "spec"} {
			if fields[name] != nil {
				return true
			}
		}
	}
	return false
}

// composed says whether a value has parts with names of their own, as references have; these are looked at.
func composed(value any) bool {
	switch typed := value.(type) {
	case map[string]any, bool, nil:
		return true
	case []any:
		for _, item := range typed {
			if _, ok := item.(map[string]any); !ok {
				return false
			}
		}
		return true
	}
	return false
}

func metadata(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return walk(value)
	}
	result := make(map[string]any, len(fields))
	for name, value := range fields {
		result[name] = walk(value)
	}
	for _, name := range dropped {
		delete(result, name)
	}
	if annotations, ok := result["annotations"].(map[string]any); ok {
		for name := range annotations {
			if strings.Contains(name, "last-applied") || Name(name) {
				annotations[name] = Removed
			}
		}
	}
	return result
}

// walkList also takes out what stands behind a flag that is called like a secret, as in arguments of containers.
func walkList(items []any) []any {
	result := make([]any, len(items))
	afterFlag := false
	for i, item := range items {
		text, isText := item.(string)
		if afterFlag && isText && !strings.HasPrefix(text, "-") {
			result[i] = Removed
		} else {
			result[i] = walk(item)
		}
		afterFlag = isText && strings.HasPrefix(text, "-") && !strings.Contains(text, "=") && Name(text)
	}
	return result
}
