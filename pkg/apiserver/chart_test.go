package apiserver

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/charts"
	"github.com/trellis-garden/trellis/pkg/helm"
)

// renderGarden renders the garden's chart with values and returns its Deployments by name, and its Services.
func renderGarden(t *testing.T, values map[string]any) (map[string]*appsv1.Deployment, []*corev1.Service) {
	t.Helper()
	chart, err := helm.LoadFS(charts.FS, "garden")
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "garden", Namespace: "garden"},
		nil)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(chart, all)
	if err != nil {
		t.Fatal(err)
	}
	deployments, services := map[string]*appsv1.Deployment{}, []*corev1.Service{}
	for file, content := range rendered {
		for _, document := range strings.Split(content, "\n---\n") {
			switch {
			case strings.Contains(document, "kind: Deployment"):
				deployment := &appsv1.Deployment{}
				if err := yaml.UnmarshalStrict([]byte(document), deployment); err != nil {
					t.Fatalf("%s: %v\n%s", file, err, document)
				}
				deployments[deployment.Name] = deployment
			case strings.Contains(document, "kind: Service"):
				service := &corev1.Service{}
				if err := yaml.UnmarshalStrict([]byte(document), service); err != nil {
					t.Fatalf("%s: %v\n%s", file, err, document)
				}
				services = append(services, service)
			}
		}
	}
	return deployments, services
}

func TestChartFitsTheServer(t *testing.T) {
	deployments, services := renderGarden(t, map[string]any{"clusterIdentity": "local"})
	for _, name := range []string{"garden-apiserver", "garden-controller-manager", "garden-scheduler"} {
		if deployments[name] == nil {
			t.Fatalf("the chart has no Deployment %s", name)
		}
	}
	pod := deployments["garden-apiserver"].Spec.Template
	options := NewOptions()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	options.AddFlags(flags)
	flags.String("v", "", "")
	if err := flags.Parse(pod.Spec.Containers[0].Args); err != nil {
		t.Fatalf("the chart gives arguments that the server does not take: %v", err)
	}
	options.complete()
	if err := options.Validate(); err != nil {
		t.Errorf("the chart's arguments are not enough: %v", err)
	}
	if got, want := options.Recommended.SecureServing.BindPort,
		int(pod.Spec.Containers[0].Ports[0].ContainerPort); got != want {
		t.Errorf("listens on %d, the container's port is %d", got, want)
	}
	if len(services) != 1 || services[0].Name != "garden-apiserver" ||
		services[0].Spec.Selector["role"] != pod.Labels["role"] {
		t.Errorf("services = %+v, want one for garden-apiserver's pods", services)
	}
}

func TestReplicasOfControllersAreElected(t *testing.T) {
	deployments, _ := renderGarden(t, map[string]any{"scheduler": map[string]any{"replicas": 2}})
	for name, want := range map[string]string{
		"garden-scheduler": "--leader-elect=true", "garden-controller-manager": "--leader-elect=false",
	} {
		if args := deployments[name].Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, want) {
			t.Errorf("%s runs with %v, want %s", name, args, want)
		}
	}
}

// What the programs can be told beside what the chart knows of, such as where to serve metrics, is given as flags.
func TestChartPassesFlagsOn(t *testing.T) {
	flags := map[string]any{"flags": map[string]any{"metrics-address": ":8080"}}
	deployments, _ := renderGarden(t, map[string]any{"controllerManager": flags, "scheduler": flags})
	for _, name := range []string{"garden-controller-manager", "garden-scheduler"} {
		if args := deployments[name].Spec.Template.Spec.Containers[0].Args; !slices.Contains(args,
			"--metrics-address=:8080") {
			t.Errorf("%s is given %q", name, args)
		}
	}
}
