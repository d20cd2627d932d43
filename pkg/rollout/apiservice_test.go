package rollout

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAPIServiceUnavailable(t *testing.T) {
	condition := func(status, message string) any {
		return []any{
			map[string]any{"type": "Other", "status": "True"},
			map[string]any{"type": "Available", "status": status, "message": message},
		}
	}
	for name, test := range map[string]struct {
		conditions any
		want       string
		fails      bool
	}{
		"available":             {condition("True", "all checks passed"), "", false},
		"not available":         {condition("False", "endpoints missing"), "endpoints missing", false},
		"without a message":     {condition("Unknown", ""), "API is not available yet", false},
		"not looked at yet":     {nil, "API is not available yet", false},
		"conditions of no sort": {"none", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{"kind": "APIService"}}
			if test.conditions != nil {
				object.Object["status"] = map[string]any{"conditions": test.conditions}
			}
			got, err := APIServiceUnavailable(object)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}
