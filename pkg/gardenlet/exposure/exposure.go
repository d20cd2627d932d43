// Package exposure gives ExposureClasses their effect: each handler of gardenlet's configuration is a way of its own to
// the gateway of the seed, and control planes of the class are reached there.
package exposure

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
)

const (
	// gatewayApp is the label app of the gateway's pods.
	gatewayApp = "gateway"
	// handlerLabel, on a Service, names the handler that it was made for.
	handlerLabel = "trellis.garden/exposure-class-handler"
)

// Gateway is where control planes with a handler are reached.
func Gateway(ctx context.Context, seed client.Reader, c *config.Configuration, handler string) (config.Gateway, error) {
	i := slices.IndexFunc(c.ExposureClassHandlers,
		func(h config.ExposureClassHandler) bool { return h.Name == handler })
	if i < 0 {
		const message = "exposureClassHandlers in the configuration of seed %s's gardenlet have none named %q"
		return config.Gateway{}, fmt.Errorf(message, c.SeedConfig.Name, handler)
	}
	gateway := c.Gateway
	if gateway.Address = c.ExposureClassHandlers[i].Address; gateway.Address != "" {
		return gateway, nil
	}
	service := &corev1.Service{}
	key := client.ObjectKey{Namespace: gardencorev1beta1.GardenNamespace, Name: serviceName(handler)}
	if err := seed.Get(ctx, key, service); err != nil {
		return config.Gateway{}, fmt.Errorf("reading Service %s of exposure class handler %q: %w", key, handler, err)
	}
	if gateway.Address = addressOf(service); gateway.Address == "" {
		return config.Gateway{}, fmt.Errorf("Service %s of exposure class handler %q has no address yet", key, handler)
	}
	return gateway, nil
}

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

// Apply makes the Services of a configuration's handlers. Those of handlers that are not configured any more go, unless
// they are used: who looks up a cluster by its name would still be led there.
func Apply(ctx context.Context, seed client.Client, c *config.Configuration, used sets.Set[string]) error {
	wanted := sets.New[string]()
	for _, handler := range c.ExposureClassHandlers {
		if handler.Address != "" {
			continue
		}
		wanted.Insert(handler.Name)
		if err := component.Apply(ctx, seed, serviceFor(handler, c.Gateway)); err != nil {
			return err
		}
	}
	return remove(ctx, seed, wanted.Union(used))
}

// Remove removes all Services of handlers.
func Remove(ctx context.Context, seed client.Client) error { return remove(ctx, seed, nil) }

// remove removes the Services of all handlers but some.
func remove(ctx context.Context, seed client.Client, but sets.Set[string]) error {
	services := &corev1.ServiceList{}
	namespace := client.InNamespace(gardencorev1beta1.GardenNamespace)
	if err := seed.List(ctx, services, namespace, client.HasLabels{handlerLabel}); err != nil {
		return fmt.Errorf("listing the Services of exposure class handlers: %w", err)
	}
	for i := range services.Items {
		if but.Has(services.Items[i].Labels[handlerLabel]) {
			continue
		}
		if err := component.Delete(ctx, seed, &services.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func serviceName(handler string) string { return gatewayApp + "-" + handler }

// serviceFor is the Service of a handler. Its ports lead to those of the gateway's container, which have these names.
func serviceFor(handler config.ExposureClassHandler, gateway config.Gateway) *corev1.Service {
	port := func(name string, number int, protocol corev1.Protocol) corev1.ServicePort {
		return corev1.ServicePort{
			Name: name, Port: int32(number), Protocol: protocol, TargetPort: intstr.FromString(name),
		}
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: gardencorev1beta1.GardenNamespace, Name: serviceName(handler.Name),
			Labels:      map[string]string{component.LabelApp: gatewayApp, handlerLabel: handler.Name},
			Annotations: handler.LoadBalancerService.Annotations,
		},
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeLoadBalancer,
			Selector: map[string]string{component.LabelApp: gatewayApp},
			Ports: []corev1.ServicePort{
				port("tls", gateway.TLSPort, corev1.ProtocolTCP), port("proxy", gateway.ProxyPort, corev1.ProtocolTCP),
				port("wireguard", gateway.WireGuardPort, corev1.ProtocolUDP),
			},
		},
	}
}
