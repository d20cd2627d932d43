package controllerinstallation

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component/networkpolicies"
)

// annotationFromWorld, on a Service, lists ports of the pods behind it that everybody may connect to, as a webhook of
// the seed's API server needs. The name and the value, a list of ports as NetworkPolicies have it, are those of the
// published API.
const annotationFromWorld = "networking.resources.gardener.cloud/from-world-to-ports"

// restrictNetwork lets the pods of an extension talk to those only that their labels, and its Services, ask for.
func (r *Reconciler) restrictNetwork(ctx context.Context, namespace string,
	networks gardencorev1beta1.SeedNetworks) error {
	apiServer, err := networkpolicies.APIServer(ctx, r.Seed)
	if err != nil {
		return err
	}
	services := &corev1.ServiceList{}
	if err := r.Seed.List(ctx, services, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing the Services of %s: %w", namespace, err)
	}
	values := networkpolicies.Values{Networks: networks, APIServer: apiServer}
	for _, service := range services.Items {
		opening, open, err := openingOf(service)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "A Service of the extension opens no ports", "service", service.Name)
		} else if open {
			values.Openings = append(values.Openings, opening)
		}
	}
	return networkpolicies.Apply(ctx, r.Seed, namespace,
		networkpolicies.Objects(networkpolicies.Extension, namespace, values))
}

// openingOf reads the annotation; false if there is none. Neither an empty list nor a Service without a selector opens
// anything: in a policy they would stand for everything.
func openingOf(service corev1.Service) (networkpolicies.Opening, bool, error) {
	text, found := service.Annotations[annotationFromWorld]
	if !found {
		return networkpolicies.Opening{}, false, nil
	}
	var ports []networkingv1.NetworkPolicyPort
	if err := json.Unmarshal([]byte(text), &ports); err != nil {
		return networkpolicies.Opening{}, false, fmt.Errorf("annotation %s: %w", annotationFromWorld, err)
	}
	if len(ports) == 0 || len(service.Spec.Selector) == 0 {
		return networkpolicies.Opening{}, false, nil
	}
	return networkpolicies.Opening{Service: service.Name, Pods: service.Spec.Selector, Ports: ports}, true, nil
}
