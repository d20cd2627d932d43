package landscape

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/charts"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/helm"
)

// gatewayName is the name of the gateway's chart, release and Service.
const gatewayName = "gateway"

// gatewayPhase installs the one address of the seed.
func gatewayPhase(ctx context.Context, r *run) error {
	c, err := r.runtime()
	if err != nil {
		return err
	}
	crd, err := charts.FS.ReadFile("crds/seed/gateway.networking.k8s.io_tlsroutes.yaml")
	if err != nil {
		return err
	}
	if _, err := c.applyYAML(ctx, string(crd)); err != nil {
		return err
	}
	chart, err := helm.LoadFS(charts.FS, gatewayName)
	if err != nil {
		return err
	}
	image, err := r.image("vpn")
	if err != nil {
		return err
	}
	values := gatewayValues(r.state.nodes())
	values["image"] = image
	r.Step("chart %s", gatewayName)
	installed, err := c.helm.Install(ctx, helm.Release{
		Namespace: gardenNS, Name: gatewayName, Chart: chart, Values: values,
	})
	if err != nil {
		return err
	}
	if r.state.nodes() > 1 {
		if err := balanceToGateways(ctx, c.client); err != nil {
			return err
		}
	}
	r.Step("waiting for %s", gatewayName)
	return c.helm.WaitReady(ctx, installed)
}

// gatewayValues are those of the gateway's chart in a runtime cluster with so many nodes. With one node there is one
// gateway, at ports of the node, which a second could not have. With several there are two, and kube-proxy leads what
// is sent to the address of the first node to one of them. Both are on that node: without it nobody finds a way to
// them, and on others they would only be lost with these, too. So they see from which address a client comes.
func gatewayValues(nodes int) map[string]any {
	values := map[string]any{"nodeSelector": map[string]any{corev1.LabelHostname: nodeName}}
	if nodes < 2 {
		values["nodeAddress"] = nodeIP
		return values
	}
	values["replicas"] = int64(component.Pair)
	values["hostNetwork"] = false
	values["loadBalancer"] = true
	values["externalTrafficPolicy"] = string(corev1.ServiceExternalTrafficPolicyLocal)
	values["nodePorts"] = false
	return values
}

// balanceToGateways says that the gateways' Service has the address of the first node, as the controller of a cloud's
// load balancers would.
func balanceToGateways(ctx context.Context, c client.Client) error {
	service := &corev1.Service{}
	key := client.ObjectKey{Namespace: gardenNS, Name: gatewayName}
	if err := c.Get(ctx, key, service); err != nil {
		return fmt.Errorf("address of Service %s: %w", key, err)
	}
	if ingress := service.Status.LoadBalancer.Ingress; len(ingress) == 1 && ingress[0].IP == nodeIP {
		return nil
	}
	before := service.DeepCopy()
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: nodeIP}}
	if err := c.Status().Patch(ctx, service, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("address of Service %s: %w", key, err)
	}
	return nil
}
