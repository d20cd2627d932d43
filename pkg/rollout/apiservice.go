package rollout

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// APIServiceUnavailable says why the API of an APIService is not available; empty if it is. It reads the condition
// Available without the aggregator's types, which nothing else here needs.
func APIServiceUnavailable(object *unstructured.Unstructured) (string, error) {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return "", fmt.Errorf("reading the conditions: %w", err)
	}
	for _, entry := range conditions {
		condition, _ := entry.(map[string]any)
		if condition["type"] != "Available" {
			continue
		}
		if condition["status"] == "True" {
			return "", nil
		}
		if message, _ := condition["message"].(string); message != "" {
			return message, nil
		}
	}
	return "API is not available yet", nil
}
