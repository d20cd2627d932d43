package managedseed

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/charts"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/deployment"
	"github.com/trellis-garden/trellis/pkg/gardenletconfig"
	"github.com/trellis-garden/trellis/pkg/helm"
)

const (
	// gatewayName is the name of the gateway's chart, release and Service.
	gatewayName = "gateway"
	// gatewayImage is the image that the gateway is a command of.
	gatewayImage = "vpn"
	// gatewayReplicas is how many there are: all shoots of the seed are reached by one that is left.
	gatewayReplicas = 2
)

// withGateway adds the address of the seed's gateway to a configuration that does not say it: then a gateway is
// installed, with a load balancer of the shoot's infrastructure, and its address is taken.
func (r *Reconciler) withGateway(ctx context.Context, shootTarget *target,
	configuration map[string]any) (map[string]any, error) {
	if gateway, ok := configuration["gateway"].(map[string]any); ok && gateway["address"] != nil {
		return configuration, nil
	}
	if err := r.installGateway(ctx, shootTarget); err != nil {
		return nil, fmt.Errorf("gateway of the seed: %w", err)
	}
	service := &corev1.Service{}
	if err := shootTarget.client.Get(ctx, client.ObjectKey{Namespace: deployment.Namespace, Name: gatewayName},
		service); err != nil {
		return nil, fmt.Errorf("gateway of the seed: %w", err)
	}
	address := addressOf(service)
	if address == "" {
		return nil, waitFor("GatewayWithoutAddress",
			"The load balancer of Service garden/%s in the shoot has no address yet. "+
				"Where the infrastructure has no load balancers, run a gateway and set "+
				"spec.gardenlet.config.gateway.address.", gatewayName)
	}
	return gardenletconfig.Merge(configuration, map[string]any{"gateway": map[string]any{"address": address}}), nil
}

// installGateway installs or updates the gateway's chart.
func (r *Reconciler) installGateway(ctx context.Context, shootTarget *target) error {
	image, err := r.Images.Find(gatewayImage)
	if err != nil {
		return err
	}
	values := map[string]any{
		"image": image.String(), "hostNetwork": false, "loadBalancer": true, "replicas": gatewayReplicas,
	}
	sum, err := checksum(values)
	if err != nil {
		return err
	}
	present := &corev1.Service{}
	err = shootTarget.client.Get(ctx, client.ObjectKey{Namespace: deployment.Namespace, Name: gatewayName}, present)
	if err == nil && present.Annotations[checksumAnnotation] == sum {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	values["serviceAnnotations"] = map[string]any{checksumAnnotation: sum}
	chart, err := helm.LoadFS(charts.FS, gatewayName)
	if err != nil {
		return err
	}
	_, err = shootTarget.helm.Install(ctx,
		helm.Release{Namespace: deployment.Namespace, Name: gatewayName, Chart: chart, Values: values})
	return err
}

// checksumAnnotation on the gateway's Service says with which values the chart was installed.
const checksumAnnotation = gardencorev1beta1.AnnotationInstalledChecksum

// addressOf is the address of a load balancer; empty when it has none yet.
func addressOf(service *corev1.Service) string {
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		if ingress.IP != "" {
			return ingress.IP
		}
		if ingress.Hostname != "" {
			return ingress.Hostname
		}
	}
	return ""
}
