package charts_test

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/charts"
	"github.com/trellis-garden/trellis/pkg/helm"
)

// render gives a chart values, and returns the texts of its objects.
func render(t *testing.T, name string, given map[string]any) ([]string, error) {
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
	files, err := engine.Render(chart, values)
	if err != nil {
		return nil, err
	}
	var objects []string
	for _, text := range files {
		objects = append(objects, strings.Split(text, "\n---\n")...)
	}
	return objects, nil
}

// objectsWith are the objects of a kind of a chart that is given values.
func objectsWith[T any](t *testing.T, name, kind string, given map[string]any) []*T {
	t.Helper()
	all, err := render(t, name, given)
	if err != nil {
		t.Fatal(err)
	}
	var result []*T
	for _, text := range all {
		if !strings.Contains(text, "\nkind: "+kind+"\n") {
			continue
		}
		object := new(T)
		if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
			t.Fatalf("chart %s: %v\n%s", name, err, text)
		}
		result = append(result, object)
	}
	return result
}

func deploymentsWith(t *testing.T, name string, given map[string]any) []*appsv1.Deployment {
	t.Helper()
	return objectsWith[appsv1.Deployment](t, name, "Deployment", given)
}

func deploymentsOf(t *testing.T, name string) []*appsv1.Deployment {
	t.Helper()
	return deploymentsWith(t, name, nil)
}
