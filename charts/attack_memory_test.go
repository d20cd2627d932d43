package charts_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestAttackMemoryOfTheGarden plays tenants who have the processes that serve everybody read and keep all they can:
// each ends at a limit of its own, before which its garbage collector does all that it can, and no node with it.
func TestAttackMemoryOfTheGarden(t *testing.T) {
	for _, name := range []string{"garden", "gardenlet", "resource-manager"} {
		deployments := deploymentsOf(t, name)
		if len(deployments) == 0 {
			t.Errorf("chart %s has no Deployment", name)
		}
		for _, deployment := range deployments {
			container := deployment.Spec.Template.Spec.Containers[0]
			if container.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s has no limit of memory", deployment.Name)
			}
			environment := map[string]corev1.EnvVar{}
			for _, variable := range container.Env {
				environment[variable.Name] = variable
			}
			limit := environment["TRELLIS_MEMORY_LIMIT"].ValueFrom
			if limit == nil || limit.ResourceFieldRef == nil || limit.ResourceFieldRef.Resource != "limits.memory" ||
				limit.ResourceFieldRef.Divisor.String() != "1Mi" {
				t.Errorf("%s does not know its limit: %v", deployment.Name, container.Env)
			}
			if got := environment["GOMEMLIMIT"].Value; got != "$(TRELLIS_MEMORY_LIMIT)000000" {
				t.Errorf("%s: GOMEMLIMIT is %q", deployment.Name, got)
			}
		}
	}
}
