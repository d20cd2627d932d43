package networkpolicies

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/egress"
)

var (
	everything = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	// nat64 stands for IPv4 addresses that are reached from a seed of IPv6.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
	// privates are what a site numbers its own with: no link-local addresses, where most clouds serve their metadata.
	privates = []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"),
		netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fc00::/7"),
	}
	// nodeLocalDNS is where the resolver of a node listens, where there is one.
	nodeLocalDNS = netip.MustParsePrefix("169.254.20.10/32")
)

// namespaces selects those of a kind.
func namespaces(kind Kind) *metav1.LabelSelector {
	switch kind {
	case Shoot:
		return &metav1.LabelSelector{
			MatchLabels: map[string]string{gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleShoot},
		}
	case Extension:
		return &metav1.LabelSelector{
			MatchLabels: map[string]string{gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleExtension},
		}
	case Machines:
		return &metav1.LabelSelector{
			MatchLabels: map[string]string{gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleInfra},
		}
	default:
		return &metav1.LabelSelector{
			MatchLabels: map[string]string{corev1.LabelMetadataName: gardencorev1beta1.GardenNamespace},
		}
	}
}

// resolvers are the pods of the seed's DNS, and what serves it in the nodes' network.
func resolvers(v Values) []networkingv1.NetworkPolicyPeer {
	pods := networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{corev1.LabelMetadataName: metav1.NamespaceSystem},
		},
		PodSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{
				Key: "k8s-app", Operator: metav1.LabelSelectorOpIn,
				Values: []string{"kube-dns", "coredns", "node-local-dns"},
			},
		}},
	}
	return append([]networkingv1.NetworkPolicyPeer{pods, block(nodeLocalDNS)}, onNodes(v)...)
}

// onNodes is the network of the seed's nodes, which pods with host networking have the addresses of.
func onNodes(v Values) []networkingv1.NetworkPolicyPeer {
	if v.Networks.Nodes == nil {
		return nil
	}
	return blocks(prefixes(*v.Networks.Nodes), nil)
}

func public(v Values) []networkingv1.NetworkPolicyPeer {
	return append(blocks(everything, append(egress.SpecialNetworks(), own(v)...)),
		blocks([]netip.Prefix{nat64}, own(v))...)
}

func private(v Values) []networkingv1.NetworkPolicyPeer {
	return blocks(privates, append(egress.MetadataServices(), own(v)...))
}

func blocked(v Values) []networkingv1.NetworkPolicyPeer {
	return blocks(prefixes(v.Networks.BlockCIDRs...), nil)
}

// own are the networks of the seed, and those that it must not reach.
func own(v Values) []netip.Prefix {
	list := prefixes(append([]string{v.Networks.Pods, v.Networks.Services}, v.Networks.BlockCIDRs...)...)
	if v.Networks.Nodes != nil {
		list = append(list, prefixes(*v.Networks.Nodes)...)
	}
	return list
}

// exceptionRules are what operators opened. As in the proxy, an exception does not open longer networks of the seed
// within it, nor services for metadata.
func exceptionRules(v Values) []networkingv1.NetworkPolicyEgressRule {
	var rules []networkingv1.NetworkPolicyEgressRule
	for _, exception := range v.Exceptions {
		var within []netip.Prefix
		for _, network := range append(own(v), egress.MetadataServices()...) {
			if network.Bits() > exception.Network.Bits() {
				within = append(within, network)
			}
		}
		rule := networkingv1.NetworkPolicyEgressRule{To: blocks([]netip.Prefix{exception.Network}, within)}
		if exception.Port != 0 {
			rule.Ports = tcp(int32(exception.Port))
		}
		rules = append(rules, rule)
	}
	return rules
}

// blocks are networks without others. One that lies in what is left out is left out itself.
func blocks(networks, without []netip.Prefix) []networkingv1.NetworkPolicyPeer {
	var peers []networkingv1.NetworkPolicyPeer
	for _, network := range networks {
		if peer, some := cut(network, without); some {
			peers = append(peers, peer)
		}
	}
	return peers
}

func block(network netip.Prefix) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: network.String()}}
}

// cut returns a network without others; false if nothing of it is left.
func cut(network netip.Prefix, without []netip.Prefix) (networkingv1.NetworkPolicyPeer, bool) {
	peer := block(network)
	for i, other := range without {
		switch {
		case !network.Overlaps(other):
		case other.Bits() <= network.Bits():
			return peer, false
		case !slices.ContainsFunc(without[:i],
			func(earlier netip.Prefix) bool { return earlier.Bits() <= other.Bits() && earlier.Overlaps(other) }):
			peer.IPBlock.Except = append(peer.IPBlock.Except, other.String())
		}
	}
	return peer, true
}

// prefixes reads networks; what is none has been refused when the Seed was written.
func prefixes(texts ...string) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range texts {
		if network, err := netip.ParsePrefix(text); err == nil {
			list = append(list, network.Masked())
		}
	}
	return list
}
