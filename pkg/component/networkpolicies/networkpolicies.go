// Package networkpolicies says who may connect to whom in a seed, once: connections.go is the list. From it follow the
// NetworkPolicies of a namespace, for both ends of a connection. What the list does not have is refused.
package networkpolicies

import (
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/egress"
)

// Kind is what a namespace of a seed is for.
type Kind string

const (
	// Garden is the namespace garden: what a seed runs for itself and, in the runtime cluster, the garden's control
	// plane.
	Garden Kind = "garden"
	// Shoot is the namespace of a shoot's control plane.
	Shoot Kind = "shoot"
	// Extension is the namespace that an extension is installed in.
	Extension Kind = "extension"
	// Machines is the namespace beside a shoot's where machines of the local cloud are pods.
	Machines Kind = "machines"
)

// Values are what the policies depend on.
type Values struct {
	// Networks of the seed.
	Networks gardencorev1beta1.SeedNetworks
	// APIServer are the addresses of the seed's API server.
	APIServer []Endpoint
	// Exceptions are what the egress proxy may reach although it is private or the seed's.
	Exceptions []egress.Allowance
	// WithoutVPN is for shoots that have none.
	WithoutVPN bool
	// BackedUp is for shoots whose etcd is backed up to an object store.
	BackedUp bool
	// HighlyAvailable is for shoots whose control planes are, with several members of etcds and two paths of the VPN,
	// and for what serves such shoots.
	HighlyAvailable bool
	// Openings are ports of an extension's pods that everybody may connect to.
	Openings []Opening
}

// Opening is a port of pods that everybody may connect to.
type Opening struct {
	// Service that asks for it.
	Service string
	// Pods behind it.
	Pods map[string]string
	// Ports of these.
	Ports []networkingv1.NetworkPolicyPort
}

const (
	// labelWriter marks the policies of this package, so that one that is not wanted any more is told from those of
	// others.
	labelWriter = "networking.trellis.garden/writer"
	// writer is its value.
	writer = "gardenlet"
	// labelTo is toAPIServer on policies that lead to the seed's API server, whose addresses may change.
	labelTo     = "networking.trellis.garden/to"
	toAPIServer = "runtime-apiserver"
)

// Objects returns the policies of a namespace.
func Objects(kind Kind, namespace string, v Values) []client.Object {
	denied := newPolicy(namespace, "deny-all", metav1.LabelSelector{})
	denied.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	objects := []client.Object{denied}
	list := v.connections()
	for _, party := range partiesOf(kind, list) {
		policy := newPolicy(namespace, "allow-"+party.name, party.pods)
		for _, c := range list {
			c.addTo(policy, kind, party, v)
		}
		if len(policy.Spec.PolicyTypes) > 0 {
			objects = append(objects, policy)
		}
	}
	for _, opening := range v.Openings {
		policy := newPolicy(namespace, "allow-world-to-"+opening.Service,
			metav1.LabelSelector{MatchLabels: opening.Pods})
		policy.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		policy.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{Ports: opening.Ports}}
		objects = append(objects, policy)
	}
	return objects
}

func newPolicy(namespace, name string, pods metav1.LabelSelector) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{labelWriter: writer}},
		Spec:       networkingv1.NetworkPolicySpec{PodSelector: pods},
	}
}

// addTo adds to the policy of a party what the connection means for it.
func (c connection) addTo(policy *networkingv1.NetworkPolicy, kind Kind, party *party, v Values) {
	from, to := slices.Contains(c.fromKinds(), kind), slices.Contains(c.toKinds(), kind)
	if c.sameNamespace && !(from && to) {
		return
	}
	if c.to == party && to {
		if rule, some := c.ingress(v); some {
			policy.Spec.Ingress = append(policy.Spec.Ingress, rule)
			addType(policy, networkingv1.PolicyTypeIngress)
		}
	}
	if c.from != party || !from {
		return
	}
	if rules := c.egress(v); len(rules) > 0 {
		policy.Spec.Egress = append(policy.Spec.Egress, rules...)
		addType(policy, networkingv1.PolicyTypeEgress)
	}
	if c.to == seedAPIServer {
		policy.Labels[labelTo] = toAPIServer
	}
}

func addType(policy *networkingv1.NetworkPolicy, t networkingv1.PolicyType) {
	if !slices.Contains(policy.Spec.PolicyTypes, t) {
		policy.Spec.PolicyTypes = append(policy.Spec.PolicyTypes, t)
	}
}

// ingress is the rule for the one that is connected to. A rule without peers would let in everybody, so none is made
// for nobody.
func (c connection) ingress(v Values) (networkingv1.NetworkPolicyIngressRule, bool) {
	if c.from == everybody {
		return networkingv1.NetworkPolicyIngressRule{Ports: c.ports}, true
	}
	peers := c.from.peers(c.fromKinds(), c.sameNamespace, v)
	return networkingv1.NetworkPolicyIngressRule{From: peers, Ports: c.ports}, len(peers) > 0
}

// egress are the rules for the one that connects.
func (c connection) egress(v Values) []networkingv1.NetworkPolicyEgressRule {
	if c.to.rules != nil {
		return c.to.rules(v)
	}
	peers := c.to.peers(c.toKinds(), c.sameNamespace, v)
	if len(peers) == 0 {
		return nil
	}
	return []networkingv1.NetworkPolicyEgressRule{{To: peers, Ports: c.ports}}
}

// partiesOf are those with pods in namespaces of a kind, in the order of the list.
func partiesOf(kind Kind, list []connection) []*party {
	var parties []*party
	for _, c := range list {
		for _, party := range []*party{c.from, c.to} {
			if slices.Contains(party.kinds, kind) && !slices.Contains(parties, party) {
				parties = append(parties, party)
			}
		}
	}
	return parties
}
