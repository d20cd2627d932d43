package networkpolicies

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
)

// apiServerService is the name of the Service of the seed's API server, in the namespace default.
const apiServerService = "kubernetes"

// Endpoint is an address of the seed's API server.
type Endpoint struct {
	Address netip.Addr
	Port    int32
}

// superseded are policies of before this list: policies add up, so they would keep open what it closes.
var superseded = []string{
	"deny-all-ingress", "allow-to-kube-apiserver", "allow-to-etcd-main", "allow-to-etcd-events",
	"allow-to-vpn-seed-server-proxy",
	"allow-to-vpn-seed-server-wireguard", "block-networks",
}

// Apply brings the policies of a namespace up to date, and leaves alone those of others. When nothing changed it only
// reads. Policies that lead to the seed's API server stay while nobody knows where that is; without wanted ones, all
// go.
func Apply(ctx context.Context, c client.Client, namespace string, wanted []client.Object) error {
	list := &networkingv1.NetworkPolicyList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing the NetworkPolicies of %s: %w", namespace, err)
	}
	present := map[string]*networkingv1.NetworkPolicy{}
	for i := range list.Items {
		present[list.Items[i].Name] = &list.Items[i]
	}
	for _, object := range wanted {
		if !isPresent(object.(*networkingv1.NetworkPolicy), present[object.GetName()]) {
			if err := component.Apply(ctx, c, object); err != nil {
				return err
			}
		}
		delete(present, object.GetName())
	}
	for name, policy := range present {
		if policy.Labels[labelWriter] != writer &&
			(policy.Labels[component.LabelGardenRole] != component.GardenRoleControlPlane ||
				!slices.Contains(superseded, name)) {
			continue
		}
		if len(wanted) > 0 && policy.Labels[labelTo] == toAPIServer {
			continue
		}
		if err := component.Delete(ctx, c, policy); err != nil {
			return err
		}
	}
	return nil
}

func isPresent(wanted, present *networkingv1.NetworkPolicy) bool {
	if present == nil || present.Labels[labelTo] != wanted.Labels[labelTo] || present.Labels[labelWriter] != writer {
		return false
	}
	return apiequality.Semantic.DeepEqual(wanted.Spec, present.Spec)
}

// APIServer returns the addresses of the seed's API server, in order: what serves it, and its Service, as it depends on
// the network plugin which of them a policy has to name. There are none while it starts, and where it serves nobody
// within the cluster.
func APIServer(ctx context.Context, c client.Reader) ([]Endpoint, error) {
	list := &discoveryv1.EndpointSliceList{}
	err := c.List(ctx, list, client.InNamespace(metav1.NamespaceDefault),
		client.MatchingLabels{discoveryv1.LabelServiceName: apiServerService})
	if err != nil {
		return nil, fmt.Errorf("listing the endpoints of the seed's API server: %w", err)
	}
	var endpoints []Endpoint
	for _, slice := range list.Items {
		endpoints = append(endpoints, endpointsOf(slice)...)
	}
	if len(endpoints) == 0 {
		return nil, nil
	}
	service := &corev1.Service{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: apiServerService},
		service); err != nil {
		return nil, fmt.Errorf("reading the Service of the seed's API server: %w", err)
	}
	for _, text := range service.Spec.ClusterIPs {
		if address, err := netip.ParseAddr(text); err == nil {
			for _, port := range service.Spec.Ports {
				endpoints = append(endpoints, Endpoint{Address: address, Port: port.Port})
			}
		}
	}
	slices.SortFunc(endpoints, func(a, b Endpoint) int {
		if order := a.Address.Compare(b.Address); order != 0 {
			return order
		}
		return int(a.Port - b.Port)
	})
	return slices.Compact(endpoints), nil
}

func endpointsOf(slice discoveryv1.EndpointSlice) []Endpoint {
	var endpoints []Endpoint
	for _, endpoint := range slice.Endpoints {
		for _, text := range endpoint.Addresses {
			address, err := netip.ParseAddr(text)
			if err != nil {
				continue
			}
			for _, port := range slice.Ports {
				endpoints = append(endpoints, Endpoint{Address: address, Port: ptr.Deref(port.Port, 443)})
			}
		}
	}
	return endpoints
}

// endpointRules lead to the seed's API server.
func endpointRules(endpoints []Endpoint) []networkingv1.NetworkPolicyEgressRule {
	rules := make([]networkingv1.NetworkPolicyEgressRule, 0, len(endpoints))
	for _, endpoint := range endpoints {
		host := netip.PrefixFrom(endpoint.Address.Unmap(), endpoint.Address.Unmap().BitLen())
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{
			To: []networkingv1.NetworkPolicyPeer{block(host)}, Ports: tcp(endpoint.Port),
		})
	}
	return rules
}

// Follow leads all policies to the API server's addresses that are others than before.
func Follow(ctx context.Context, c client.Client, endpoints []Endpoint) error {
	list := &networkingv1.NetworkPolicyList{}
	if err := c.List(ctx, list, client.MatchingLabels{labelWriter: writer, labelTo: toAPIServer}); err != nil {
		return fmt.Errorf("listing the NetworkPolicies that lead to the seed's API server: %w", err)
	}
	wanted := endpointRules(endpoints)
	var all []error
	for i := range list.Items {
		policy := &list.Items[i]
		if apiequality.Semantic.DeepEqual(policy.Spec.Egress, wanted) {
			continue
		}
		changed := newPolicy(policy.Namespace, policy.Name, policy.Spec.PodSelector)
		changed.Labels[labelTo] = toAPIServer
		changed.Spec.PolicyTypes, changed.Spec.Egress = policy.Spec.PolicyTypes, wanted
		if err := component.Apply(ctx, c, changed); err != nil {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}
