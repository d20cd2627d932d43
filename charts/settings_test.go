package charts_test

import (
	"slices"
	"testing"
)

// A setting of an operator that is none at all differs from no setting.
func TestProjectQuotas(t *testing.T) {
	const flag = "--project-quotas=/etc/garden-controller-manager/project-quotas.yaml"
	for name, test := range map[string]struct {
		values map[string]any
		want   bool
	}{
		"the default": {map[string]any{}, false},
		"none":        {map[string]any{"projectQuotas": []any{}}, true},
		"the operator": {
			map[string]any{"projectQuotas": []any{map[string]any{"projectSelector": map[string]any{}}}}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, deployment := range deploymentsWith(t, "garden", map[string]any{"controllerManager": test.values}) {
				args := deployment.Spec.Template.Spec.Containers[0].Args
				if got := slices.Contains(args, flag); deployment.Name == "garden-controller-manager" &&
					got != test.want {
					t.Errorf("arguments %q, flag wanted: %v", args, test.want)
				}
			}
		})
	}
}
