package landscape

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
)

// One node has one gateway at its ports, for which no load balancer is asked. Several have two, both where the address
// is, which see from where clients come and take no port of a node.
func TestGatewaysOfTheLandscape(t *testing.T) {
	one := gatewayValues(1)
	if replicasIn(one) > 1 || one["loadBalancer"] != nil || one["nodeAddress"] != nodeIP {
		t.Errorf("one node: %v", one)
	}
	for _, nodes := range []int{2, 3} {
		several := gatewayValues(nodes)
		if replicasIn(several) != 2 || several["loadBalancer"] != true || several["hostNetwork"] != false ||
			several["externalTrafficPolicy"] != "Local" || several["nodePorts"] != false {
			t.Errorf("%d nodes: %v", nodes, several)
		}
		if selector := several["nodeSelector"].(map[string]any); selector[corev1.LabelHostname] != nodeName {
			t.Errorf("%d nodes: gateways run on %v", nodes, selector)
		}
	}
}

// kube-proxy leads the address of the first node to the gateways. What is as it has to be is not written.
func TestTheAddressOfTheGateways(t *testing.T) {
	service := &corev1.Service{}
	service.Namespace, service.Name = gardenNS, gatewayName
	c := fake.NewClientBuilder().WithScheme(apis.SeedScheme()).WithStatusSubresource(service).WithObjects(service).
		Build()
	version := ""
	for range 2 {
		if err := balanceToGateways(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(service), service); err != nil {
			t.Fatal(err)
		}
		if ingress := service.Status.LoadBalancer.Ingress; len(ingress) != 1 || ingress[0].IP != nodeIP {
			t.Errorf("the address is %v", ingress)
		}
		if version != "" && service.ResourceVersion != version {
			t.Error("the same address is written again")
		}
		version = service.ResourceVersion
	}
	err := balanceToGateways(t.Context(), fake.NewClientBuilder().WithScheme(apis.SeedScheme()).Build())
	if err == nil || !strings.Contains(err.Error(), "address of Service garden/gateway") {
		t.Errorf("without the Service: got %v", err)
	}
}
