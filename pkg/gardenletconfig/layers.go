// Package gardenletconfig puts configurations of gardenlets together from layers: what is said, what a shoot tells
// about the seed that it becomes, what is inherited from the gardenlet that hosts it. gardenlet makes its children with
// it, and garden-apiserver knows by it what the operators of a seed have written down.
package gardenletconfig

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// ConfigOf decodes a GardenletConfiguration; numbers stay whole.
func ConfigOf(raw *runtime.RawExtension) (map[string]any, error) {
	config := map[string]any{}
	if raw == nil || len(raw.Raw) == 0 {
		return config, nil
	}
	if err := utiljson.Unmarshal(raw.Raw, &config); err != nil {
		return nil, err
	}
	if config["seedConfig"] == nil { // null is as good as none, and does not take away what a shoot says
		delete(config, "seedConfig")
	}
	return config, nil
}

// Fields converts a value by way of JSON; numbers stay whole.
func Fields(value any) (map[string]any, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	result := map[string]any{}
	return result, utiljson.Unmarshal(raw, &result)
}

// Merge returns base with the fields of over; lists and values replace, maps are merged.
func Merge(base, over map[string]any) map[string]any {
	result := map[string]any{}
	for name, value := range base {
		result[name] = value
	}
	for name, value := range over {
		below, isMap := value.(map[string]any)
		present, wasMap := result[name].(map[string]any)
		if isMap && wasMap {
			value = Merge(present, below)
		}
		result[name] = value
	}
	return result
}
