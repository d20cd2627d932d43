package charts_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// Two gateways behind a load balancer run on different nodes where they can, an update ends none before another one is
// ready, a drain takes one at a time, and one that ends serves until the load balancer knows.
func TestTwoGateways(t *testing.T) {
	two := map[string]any{"replicas": 2, "loadBalancer": true, "hostNetwork": false}
	gateway := deploymentsWith(t, "gateway", two)[0]
	if *gateway.Spec.Replicas != 2 || gateway.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 {
		t.Errorf("%d replicas, strategy %+v", *gateway.Spec.Replicas, gateway.Spec.Strategy)
	}
	pod := gateway.Spec.Template.Spec
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		if !slices.ContainsFunc(pod.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
			return c.TopologyKey == key && c.LabelSelector.MatchLabels["app"] == "gateway"
		}) {
			t.Errorf("they are not spread by %s: %+v", key, pod.TopologySpreadConstraints)
		}
	}
	lifecycle := pod.Containers[0].Lifecycle
	if lifecycle == nil || lifecycle.PreStop.Sleep.Seconds >= *pod.TerminationGracePeriodSeconds {
		t.Errorf("lifecycle %+v, %d seconds to end", lifecycle, *pod.TerminationGracePeriodSeconds)
	}
	budgets := objectsWith[policyv1.PodDisruptionBudget](t, "gateway", "PodDisruptionBudget", two)
	if len(budgets) != 1 || budgets[0].Spec.MaxUnavailable.IntValue() != 1 ||
		budgets[0].Spec.Selector.MatchLabels["app"] != "gateway" {
		t.Errorf("disruption budgets %+v", budgets)
	}
}

// The load balancer leads where its operator says: by default to ports of all nodes, and where it has to keep the
// addresses of clients, to nodes with a gateway.
func TestServiceOfGateways(t *testing.T) {
	two := map[string]any{"replicas": 2, "loadBalancer": true, "hostNetwork": false}
	service := objectsWith[corev1.Service](t, "gateway", "Service", two)[0]
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer || service.Spec.ExternalTrafficPolicy != "" ||
		!*service.Spec.AllocateLoadBalancerNodePorts {
		t.Errorf("%+v", service.Spec)
	}
	two["externalTrafficPolicy"], two["nodePorts"] = "Local", false
	service = objectsWith[corev1.Service](t, "gateway", "Service", two)[0]
	if service.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal ||
		*service.Spec.AllocateLoadBalancerNodePorts {
		t.Errorf("%+v", service.Spec)
	}
	if services := objectsWith[corev1.Service](t, "gateway", "Service", nil); len(services) != 0 {
		t.Errorf("without a load balancer: %+v", services)
	}
}

// One gateway takes the ports of its node, so that an update ends the old one first, at once, and no budget keeps its
// node from being drained.
func TestOneGateway(t *testing.T) {
	gateway := deploymentsOf(t, "gateway")[0]
	lifecycle := gateway.Spec.Template.Spec.Containers[0].Lifecycle
	if gateway.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType || lifecycle != nil {
		t.Errorf("strategy %+v, lifecycle %+v", gateway.Spec.Strategy, lifecycle)
	}
	if budgets := objectsWith[policyv1.PodDisruptionBudget](t, "gateway", "PodDisruptionBudget", nil); len(budgets) != 0 {
		t.Errorf("disruption budgets %+v", budgets)
	}
	_, err := render(t, "gateway", map[string]any{"replicas": 2})
	if err == nil || !strings.Contains(err.Error(), "replicas: 2: more than one gateway need loadBalancer: true") {
		t.Errorf("two on one node: got %v", err)
	}
}
