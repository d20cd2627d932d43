package config

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/charts"
	"github.com/trellis-garden/trellis/pkg/helm"
)

// The chart of gardenlet renders a configuration that gardenlet accepts.
func TestChart(t *testing.T) {
	rendered := render(t, "gardenlet", map[string]any{
		"image":               "registry.example/gardenlet:v1",
		"bootstrapKubeconfig": "apiVersion: v1\nkind: Config\n",
		"hostAliases":         []any{map[string]any{"ip": "172.18.0.2", "hostnames": []any{"api.garden"}}},
		"config": map[string]any{
			"gateway":    map[string]any{"address": "172.18.0.2"},
			"resources":  map[string]any{"capacity": map[string]any{"shoots": 10000000}},
			"etcdConfig": map[string]any{"deltaSnapshotPeriod": "30s"},
			"seedConfig": map[string]any{
				"metadata": map[string]any{"name": "local"},
				"spec":     map[string]any{"provider": map[string]any{"type": "local"}},
			},
		},
	})
	documents := strings.Split(rendered["gardenlet/templates/config.yaml"], "\n---\n")
	configMap, secret := &corev1.ConfigMap{}, &corev1.Secret{}
	decode(t, documents[0], configMap)
	decode(t, documents[1], secret)
	c, err := Parse([]byte(configMap.Data["config.yaml"]))
	if err != nil {
		t.Fatalf("%v in\n%s", err, configMap.Data["config.yaml"])
	}
	if c.SeedConfig.Name != "local" || c.Resources.Capacity.Shoots != 10000000 ||
		c.ETCDConfig.DeltaSnapshotPeriod.Duration != 30*time.Second ||
		c.GardenClientConnection.BootstrapKubeconfig.Name != secret.Name {
		t.Errorf("configuration is %+v", c)
	}
	if secret.StringData["kubeconfig"] == "" || secret.Namespace != "garden" {
		t.Errorf("secret is %+v", secret)
	}
	deployment := &appsv1.Deployment{}
	decode(t, rendered["gardenlet/templates/deployment.yaml"], deployment)
	if got := deployment.Spec.Template.Spec.HostAliases; len(got) != 1 || got[0].IP != "172.18.0.2" {
		t.Errorf("host aliases are %v", got)
	}
}

func TestChartOfResourceManager(t *testing.T) {
	rendered := render(t, "resource-manager",
		map[string]any{
			"image": "registry.example/resource-manager:v1", "clusterID": "seed-local", "syncPeriod": "1m0s",
		})
	deployment := &appsv1.Deployment{}
	decode(t, rendered["resource-manager/templates/deployment.yaml"], deployment)
	if container := deployment.Spec.Template.Spec.Containers[0]; container.Image !=
		"registry.example/resource-manager:v1" || container.Args[0] != "--cluster-id=seed-local" {
		t.Errorf("container is %+v", container)
	}
}

// One resource-manager elects no leader, and is replaced by recreation. Two keep apart, elect, and are drained one at a
// time.
func TestReplicasOfResourceManager(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		documents := strings.Split(render(t, "resource-manager",
			map[string]any{"replicas": replicas})["resource-manager/templates/deployment.yaml"], "\n---\n")
		deployment := &appsv1.Deployment{}
		decode(t, documents[0], deployment)
		pod, several := &deployment.Spec.Template.Spec, replicas > 1
		if got := int(*deployment.Spec.Replicas); got != replicas {
			t.Errorf("%d replicas: got %d", replicas, got)
		}
		if got := slices.Contains(pod.Containers[0].Args, "--leader-elect"); got != several {
			t.Errorf("%d replicas: elect a leader: %v", replicas, got)
		}
		if got := deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType; got != several {
			t.Errorf("%d replicas: updated by %+v", replicas, deployment.Spec.Strategy)
		}
		if got := len(pod.TopologySpreadConstraints); got != 2*(replicas-1) {
			t.Errorf("%d replicas: kept apart by %+v", replicas, pod.TopologySpreadConstraints)
		}
		if len(documents) != replicas {
			t.Fatalf("%d replicas: %d objects", replicas, len(documents))
		}
		for _, document := range documents[1:] {
			budget := &policyv1.PodDisruptionBudget{}
			decode(t, document, budget)
			if budget.Spec.MaxUnavailable.IntValue() != 1 ||
				!maps.Equal(budget.Spec.Selector.MatchLabels, deployment.Spec.Selector.MatchLabels) {
				t.Errorf("budget is %+v", budget.Spec)
			}
		}
	}
}

// One gardenlet elects no leader. Two keep apart, elect, and are drained one at a time. Old ones end before new ones
// begin, as one that is alone works without a lease.
func TestReplicasOfGardenlet(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		rendered := render(t, "gardenlet", map[string]any{"replicaCount": replicas})
		deployment := &appsv1.Deployment{}
		decode(t, rendered["gardenlet/templates/deployment.yaml"], deployment)
		pod, selected := &deployment.Spec.Template.Spec, deployment.Spec.Selector.MatchLabels
		if *deployment.Spec.Replicas != int32(replicas) ||
			deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
			t.Errorf("%d replicas: got %d, %+v", replicas, *deployment.Spec.Replicas, deployment.Spec.Strategy)
		}
		if got := slices.Contains(pod.Containers[0].Args, "--leader-elect"); got != (replicas > 1) {
			t.Errorf("%d replicas: elect a leader: %v", replicas, got)
		}
		spread := map[string]bool{}
		for _, constraint := range pod.TopologySpreadConstraints {
			spread[constraint.TopologyKey] = maps.Equal(constraint.LabelSelector.MatchLabels, selected)
		}
		apart := spread[corev1.LabelHostname] && spread[corev1.LabelTopologyZone]
		if len(spread) != 2*(replicas-1) || apart != (replicas > 1) {
			t.Errorf("%d replicas: kept apart by %+v", replicas, pod.TopologySpreadConstraints)
		}
		budget := &policyv1.PodDisruptionBudget{}
		decode(t, rendered["gardenlet/templates/disruptionbudget.yaml"], budget)
		if replicas == 1 {
			if budget.Name != "" {
				t.Errorf("one replica has the budget %+v", budget.Spec)
			}
			continue
		}
		if budget.Spec.MaxUnavailable.IntValue() != 1 || !maps.Equal(budget.Spec.Selector.MatchLabels, selected) {
			t.Errorf("budget is %+v", budget.Spec)
		}
	}
}

func render(t *testing.T, name string, values map[string]any) map[string]string {
	t.Helper()
	chart, err := helm.LoadFS(charts.FS, name)
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: name, Namespace: "garden"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(chart, all)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

func decode(t *testing.T, document string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
}

// The configuration of the local landscape is one that gardenlet accepts.
func TestLocalLandscape(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "landscape", "local", "gardenlet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	decode(t, string(data), &values)
	rendered := render(t, "gardenlet", map[string]any{"config": values})
	configMap := &corev1.ConfigMap{}
	decode(t, strings.Split(rendered["gardenlet/templates/config.yaml"], "\n---\n")[0], configMap)
	if _, err := Parse([]byte(configMap.Data["config.yaml"])); err != nil {
		t.Error(err)
	}
}
