package charts_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// gardenWith gives the garden's chart so many replicas of all.
func gardenWith(replicas int) map[string]any {
	of := map[string]any{"replicas": replicas}
	return map[string]any{"apiserver": of, "controllerManager": of, "scheduler": of}
}

// Two of each of the garden's processes run on different nodes, and in different zones, where they can, and a drain
// takes one at a time. One that serves ends when all know of it; an update ends none before another one is ready. Of
// controllers one works.
func TestTwoOfTheGarden(t *testing.T) {
	given := gardenWith(2)
	budgets := objectsWith[policyv1.PodDisruptionBudget](t, "garden", "PodDisruptionBudget", given)
	deployments := deploymentsWith(t, "garden", given)
	if len(deployments) != 3 || len(budgets) != 3 {
		t.Fatalf("%d Deployments, %d disruption budgets", len(deployments), len(budgets))
	}
	for _, deployment := range deployments {
		labels := deployment.Spec.Selector.MatchLabels
		pod := deployment.Spec.Template.Spec
		for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
			if !slices.ContainsFunc(pod.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
				return c.TopologyKey == key && c.LabelSelector.MatchLabels["role"] == labels["role"]
			}) {
				t.Errorf("%s is not spread by %s: %+v", deployment.Name, key, pod.TopologySpreadConstraints)
			}
		}
		if !slices.ContainsFunc(budgets, func(b *policyv1.PodDisruptionBudget) bool {
			return b.Name == deployment.Name && b.Spec.MaxUnavailable.IntValue() == 1 &&
				b.Spec.Selector.MatchLabels["role"] == labels["role"]
		}) {
			t.Errorf("%s has no disruption budget", deployment.Name)
		}
		if *deployment.Spec.Replicas != 2 {
			t.Errorf("%s has %d replicas", deployment.Name, *deployment.Spec.Replicas)
		}
		if deployment.Name == "garden-apiserver" {
			lifecycle := pod.Containers[0].Lifecycle
			if lifecycle == nil || lifecycle.PreStop.Sleep.Seconds >= *pod.TerminationGracePeriodSeconds ||
				deployment.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 {
				t.Errorf("lifecycle %+v, strategy %+v", lifecycle, deployment.Spec.Strategy)
			}
		} else if !slices.Contains(pod.Containers[0].Args, "--leader-elect=true") {
			t.Errorf("%s elects no leader: %q", deployment.Name, pod.Containers[0].Args)
		}
	}
}

// A controller that is alone elects no leader, so that it ends before others begin when it gets company: these would
// elect one beside it.
func TestControllersOfTheGardenEndBeforeOthersBegin(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		for _, deployment := range deploymentsWith(t, "garden", gardenWith(replicas)) {
			if deployment.Name != "garden-apiserver" &&
				deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
				t.Errorf("%d of %s: strategy %+v", replicas, deployment.Name, deployment.Spec.Strategy)
			}
		}
	}
}

// One of each costs what it did: nothing keeps its node from being drained, and it does not wait to end.
func TestOneOfTheGarden(t *testing.T) {
	given := gardenWith(1)
	budgets := objectsWith[policyv1.PodDisruptionBudget](t, "garden", "PodDisruptionBudget", given)
	if len(budgets) != 0 {
		t.Errorf("disruption budgets %+v", budgets)
	}
	for _, deployment := range deploymentsWith(t, "garden", given) {
		pod := deployment.Spec.Template.Spec
		if len(pod.TopologySpreadConstraints) > 0 || pod.Containers[0].Lifecycle != nil {
			t.Errorf("%s: spread %+v, lifecycle %+v", deployment.Name, pod.TopologySpreadConstraints,
				pod.Containers[0].Lifecycle)
		}
	}
}
