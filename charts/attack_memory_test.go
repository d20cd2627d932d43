package charts_test

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/charts"
	"github.com/trellis-garden/trellis/pkg/helm"
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

func deploymentsOf(t *testing.T, name string) []*appsv1.Deployment {
	t.Helper()
	return deploymentsWith(t, name, nil)
}

// deploymentsWith are those of a chart that is given values.
func deploymentsWith(t *testing.T, name string, given map[string]any) []*appsv1.Deployment {
	t.Helper()
	chart, err := helm.LoadFS(charts.FS, name)
	if err != nil {
		t.Fatal(err)
	}
	values, err := chartutil.ToRenderValues(chart, given, chartutil.ReleaseOptions{Name: name, Namespace: "garden"},
		nil)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(chart, values)
	if err != nil {
		t.Fatal(err)
	}
	var result []*appsv1.Deployment
	for file, text := range rendered {
		for _, document := range strings.Split(text, "\n---\n") {
			if !strings.Contains(document, "kind: Deployment\n") {
				continue
			}
			deployment := &appsv1.Deployment{}
			if err := yaml.UnmarshalStrict([]byte(document), deployment); err != nil {
				t.Fatalf("%s: %v\n%s", file, err, document)
			}
			result = append(result, deployment)
		}
	}
	return result
}
