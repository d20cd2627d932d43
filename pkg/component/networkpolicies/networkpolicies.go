// Package networkpolicies keeps the control planes of different shoots apart: nothing may connect into a shoot's namespace
// in the seed but what a control plane needs.
package networkpolicies

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-garden/trellis/pkg/vpn"
)

// LabelNamespaceRole is "shoot" on the namespaces of shoots.
const LabelNamespaceRole = "gardener.cloud/role"

// Values of the policies.
type Values struct {
	// IsWorkerless leaves out the VPN.
	IsWorkerless bool
	// GatewayNetworks are the CIDRs that the gateway connects from when it uses the network of the seed's nodes, e.g. the
	// nodes' network; pods of the seed's own namespaces are allowed anyway.
	GatewayNetworks []string
	// BlockedNetworks are CIDRs that nothing in the namespace may reach.
	BlockedNetworks []string
}

// Objects returns the policies of a shoot's namespace.
func Objects(namespace string, v Values) []client.Object {
	fromSeed := append([]networkingv1.NetworkPolicyPeer{anyPod(), seedNamespaces()}, blocks(v.GatewayNetworks)...)
	objects := []client.Object{
		denyAll(namespace),
		allow(namespace, "allow-to-kube-apiserver", kubeapiserver.Labels(), fromSeed, tcp(kubeapiserver.Port)),
	}
	if len(v.BlockedNetworks) > 0 {
		objects = append(objects, block(namespace, v.BlockedNetworks))
	}
	for _, role := range []etcd.Role{etcd.Main, etcd.Events} {
		objects = append(objects, allow(namespace, "allow-to-"+etcd.Name(role), etcd.Labels(role),
			[]networkingv1.NetworkPolicyPeer{pods(kubeapiserver.Labels())}, tcp(etcd.ClientPort)))
	}
	if v.IsWorkerless {
		return objects
	}
	fromGateway := append([]networkingv1.NetworkPolicyPeer{seedNamespaces()}, blocks(v.GatewayNetworks)...)
	return append(objects,
		allow(namespace, "allow-to-vpn-seed-server-proxy", vpnseedserver.Labels(),
			[]networkingv1.NetworkPolicyPeer{pods(kubeapiserver.Labels())}, tcp(vpn.HTTPConnectPort)),
		allow(namespace, "allow-to-vpn-seed-server-wireguard", vpnseedserver.Labels(), fromGateway, udp(vpn.WireGuardPort)),
	)
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels: map[string]string{component.LabelGardenRole: component.GardenRoleControlPlane},
	}
}

func denyAll(namespace string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta(namespace, "deny-all-ingress"),
		Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}},
	}
}

// block lets all pods reach everything but the networks. Pods of the seed are named apart from addresses, because not every network
// plugin counts theirs among these.
func block(namespace string, networks []string) *networkingv1.NetworkPolicy {
	ipv4, ipv6 := &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}, &networkingv1.IPBlock{CIDR: "::/0"}
	for _, network := range networks {
		all := ipv4
		if strings.Contains(network, ":") {
			all = ipv6
		}
		all.Except = append(all.Except, network)
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta(namespace, "block-networks"),
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress: []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{
				{NamespaceSelector: &metav1.LabelSelector{}}, {IPBlock: ipv4}, {IPBlock: ipv6},
			}}},
		},
	}
}

func allow(namespace, name string, to map[string]string, from []networkingv1.NetworkPolicyPeer, port networkingv1.NetworkPolicyPort) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta(namespace, name),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: to},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: from, Ports: []networkingv1.NetworkPolicyPort{port}}},
		},
	}
}

func anyPod() networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}}
}

func pods(labels map[string]string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: labels}}
}

// seedNamespaces are all namespaces but those of shoots: the gateway, gardenlet, resource-manager, extensions.
func seedNamespaces() networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: LabelNamespaceRole, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"shoot"},
		}},
	}}
}

func blocks(networks []string) []networkingv1.NetworkPolicyPeer {
	peers := make([]networkingv1.NetworkPolicyPeer, 0, len(networks))
	for _, network := range networks {
		peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: network}})
	}
	return peers
}

func tcp(port int32) networkingv1.NetworkPolicyPort { return policyPort(corev1.ProtocolTCP, port) }
func udp(port int32) networkingv1.NetworkPolicyPort { return policyPort(corev1.ProtocolUDP, port) }

func policyPort(protocol corev1.Protocol, port int32) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: ptr.To(protocol), Port: ptr.To(intstr.FromInt32(port))}
}
