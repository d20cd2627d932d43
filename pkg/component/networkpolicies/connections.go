package networkpolicies

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	egresscomponent "github.com/trellis-garden/trellis/pkg/component/egress"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/vpn"
)

// Labels by which pods of the namespaces ask for connections, with the value Allowed. The names are those of the
// published API.
const (
	Allowed               = gardencorev1beta1.LabelNetworkPolicyAllowed
	LabelToDNS            = gardencorev1beta1.LabelNetworkPolicyToDNS
	LabelToSeedAPIServer  = gardencorev1beta1.LabelNetworkPolicyToRuntimeAPIServer
	LabelToPublic         = gardencorev1beta1.LabelNetworkPolicyToPublicNetworks
	LabelToPrivate        = gardencorev1beta1.LabelNetworkPolicyToPrivateNetworks
	LabelToBlocked        = gardencorev1beta1.LabelNetworkPolicyToBlockedCIDRs
	LabelToEgress         = gardencorev1beta1.LabelNetworkPolicyToEgress
	LabelToBackupStore    = gardencorev1beta1.LabelNetworkPolicyToBackupStore
	LabelToKubeAPIServer  = gardencorev1beta1.LabelNetworkPolicyToShootAPIServer
	LabelToKubeAPIServers = "networking.resources.gardener.cloud/to-all-shoots-kube-apiserver-tcp-443"
)

// party is one side of a connection.
type party struct {
	// name of its policy is allow-<name>.
	name string
	// kinds of namespaces that it has pods in; none if there are no policies of ours for it.
	kinds []Kind
	pods  metav1.LabelSelector
	// others are peers beside these pods.
	others func(Values) []networkingv1.NetworkPolicyPeer
	// rules replace peers and ports where the ports depend on the address.
	rules func(Values) []networkingv1.NetworkPolicyEgressRule
}

// connection may be made.
type connection struct {
	from, to *party
	ports    []networkingv1.NetworkPolicyPort
	// sameNamespace is for those within one namespace.
	sameNamespace bool
	// onlyFrom and onlyTo are the kinds of namespaces of the parties; all that they are in if there are none.
	onlyFrom, onlyTo []Kind
}

var (
	controlPlanes = []Kind{Shoot, Garden}
	all           = []Kind{Shoot, Garden, Extension}

	// Parts of control planes that others connect to. Those that only connect ask for it by labels.
	kubeAPIServer = &party{name: "kube-apiserver", kinds: controlPlanes, pods: matching(kubeapiserver.Labels())}
	etcds         = &party{
		name: "etcd", kinds: controlPlanes,
		pods: roles(etcdcomponent.Labels(etcdcomponent.Main)[component.LabelApp], string(etcdcomponent.Main),
			string(etcdcomponent.Events)),
	}
	// Those of one etcd know each other, and not those of the other one.
	mainMembers = &party{
		name: "etcd-main-members", kinds: controlPlanes, pods: matching(etcdcomponent.Labels(etcdcomponent.Main)),
	}
	eventsMembers = &party{
		name: "etcd-events-members", kinds: controlPlanes, pods: matching(etcdcomponent.Labels(etcdcomponent.Events)),
	}
	vpnSeedServer       = seedServerOf(vpnseedserver.First)
	secondVPNSeedServer = seedServerOf(vpnseedserver.Second)
	// servedAPIs are what extensions serve for the API servers of clusters without workers. They open it by a policy of
	// their own.
	servedAPIs = &party{name: "served-apis", others: func(Values) []networkingv1.NetworkPolicyPeer {
		return []networkingv1.NetworkPolicyPeer{{NamespaceSelector: namespaces(Shoot)}}
	}}

	// What a seed runs for itself.
	gardenlet = &party{
		name: "gardenlet", kinds: []Kind{Garden}, pods: matching(map[string]string{"app": "gardenlet"}),
	}
	gateway = &party{
		name: "gateway", kinds: []Kind{Garden}, pods: matching(map[string]string{"app": "gateway"}), others: onNodes,
	}
	egressProxy   = &party{name: "egress", kinds: []Kind{Garden}, pods: matching(egresscomponent.Labels())}
	seedResolving = &party{
		name: "seed-to-dns", kinds: []Kind{Garden}, pods: apps("gardenlet", "resource-manager", "gateway", egress.Name),
	}
	seedToSeed = &party{
		name: "seed-to-runtime-apiserver", kinds: []Kind{Garden},
		pods: apps("gardenlet", "resource-manager", "gateway"),
	}
	seedToShoots = &party{
		name: "seed-to-kube-apiservers", kinds: []Kind{Garden}, pods: apps("gardenlet", "resource-manager"),
	}

	// The garden's own processes.
	gardenProcesses = &party{
		name: "garden", kinds: []Kind{Garden}, pods: matching(map[string]string{"app": "gardener"}),
	}
	gardenAPIServer = &party{
		name: "garden-apiserver", kinds: []Kind{Garden}, pods: matching(component.Labels("gardener", "apiserver")),
	}
	// gardenSites are what browsers open: the dashboard, and where people log in to it.
	gardenSites = &party{
		name: "garden-sites", kinds: []Kind{Garden}, pods: roles("gardener", "dashboard", "login"),
	}

	// machines are all pods of their namespaces, whatever labels they have.
	machines = &party{name: "machines", kinds: []Kind{Machines}}

	// Pods that ask by a label.
	labelledDNS            = labelled("to-dns", LabelToDNS, all)
	labelledSeedAPIServer  = labelled("to-runtime-apiserver", LabelToSeedAPIServer, all)
	labelledPublic         = labelled("to-public-networks", LabelToPublic, all)
	labelledPrivate        = labelled("to-private-networks", LabelToPrivate, all)
	labelledBlocked        = labelled("to-blocked-cidrs", LabelToBlocked, all)
	labelledBackupStore    = labelled("to-backup-store", LabelToBackupStore, []Kind{Shoot})
	labelledEgress         = labelled("to-garden-egress", LabelToEgress, []Kind{Shoot})
	labelledKubeAPIServer  = labelled("to-kube-apiserver", LabelToKubeAPIServer, controlPlanes)
	labelledKubeAPIServers = labelled("to-all-shoots-kube-apiserver", LabelToKubeAPIServers, []Kind{Garden, Extension})

	// What has no policies of ours.
	everybody     = &party{name: "everybody"}
	dns           = &party{name: "dns", others: resolvers}
	seedAPIServer = &party{
		name: "runtime-apiserver", rules: func(v Values) []networkingv1.NetworkPolicyEgressRule {
			return endpointRules(v.APIServer)
		},
	}
	publicNetworks  = &party{name: "public-networks", others: public}
	privateNetworks = &party{name: "private-networks", others: private}
	blockedNetworks = &party{name: "blocked-cidrs", others: blocked}
	nodes           = &party{name: "nodes", others: onNodes}
	exceptions      = &party{name: "exceptions", rules: exceptionRules}
)

var (
	apiServerPort = tcp(kubeapiserver.Port)
	etcdPort      = tcp(etcdcomponent.ClientPort)
	// etcdMemberPorts: members ask each other as clients, too.
	etcdMemberPorts = tcp(etcdcomponent.ClientPort, etcdcomponent.PeerPort)
	// etcdStatusPort serves no data.
	etcdStatusPort = tcp(etcdcomponent.HealthPort)
	gatewayPorts   = slices.Concat(tcp(443, 8443), udp(vpn.TunnelPort))
	gardenAPIPort  = tcp(8443)
	resolverPorts  = slices.Concat(udp(53, 8053), tcp(53, 8053))
	anyDatagram    = []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolUDP)}}
	everyPort      []networkingv1.NetworkPolicyPort
	toShoots       = []Kind{Shoot}
	fromShoots     = []Kind{Shoot}
	ofTheGarden    = []Kind{Garden}
	// registryPort is where the node of a local landscape serves images.
	registryPort   = tcp(5000)
	proxyOfCluster = tcp(egress.ClusterPort, egress.OutsidePort)
)

// connections are all that may be made in a seed.
func (v Values) connections() []connection {
	list := []connection{
		{from: kubeAPIServer, to: etcds, ports: etcdPort, sameNamespace: true},
		{from: labelledKubeAPIServer, to: kubeAPIServer, ports: apiServerPort, sameNamespace: true},
		{from: seedToShoots, to: kubeAPIServer, ports: apiServerPort, onlyTo: toShoots},
		{from: labelledKubeAPIServers, to: kubeAPIServer, ports: apiServerPort, onlyTo: toShoots},
		{from: gateway, to: kubeAPIServer, ports: apiServerPort},

		{from: kubeAPIServer, to: egressProxy, ports: proxyOfCluster, onlyFrom: fromShoots},
		{from: labelledEgress, to: egressProxy, ports: tcp(egress.OutsidePort)},
		{from: egressProxy, to: servedAPIs, ports: tcp(egress.ServedAPIsPort)},
		{from: egressProxy, to: publicNetworks, ports: everyPort},
		{from: egressProxy, to: exceptions},
		{from: egressProxy, to: gateway, ports: tcp(443)},

		{from: everybody, to: gateway, ports: gatewayPorts},
		{from: seedToSeed, to: seedAPIServer},
		{from: seedResolving, to: dns, ports: resolverPorts},
		{from: gardenlet, to: etcds, ports: etcdStatusPort, onlyTo: toShoots},
		{from: gardenlet, to: publicNetworks, ports: everyPort},
		{from: gardenlet, to: privateNetworks, ports: everyPort},
		{from: gardenlet, to: gateway, ports: tcp(443)},
		// It is the one that leads the others to a seed's API server with other addresses.
		{from: gardenlet, to: nodes, ports: tcp(443, kubeapiserver.Port)},

		{from: gardenProcesses, to: kubeAPIServer, ports: apiServerPort, sameNamespace: true},
		{from: gardenProcesses, to: dns, ports: resolverPorts},
		{from: gardenAPIServer, to: etcds, ports: etcdPort, sameNamespace: true},
		{from: kubeAPIServer, to: gardenAPIServer, ports: gardenAPIPort, sameNamespace: true},
		{from: gateway, to: gardenAPIServer, ports: gardenAPIPort},
		{from: gateway, to: gardenSites, ports: gardenAPIPort},
		// Issuers of people's tokens may be behind the gateway.
		{from: kubeAPIServer, to: gateway, ports: tcp(443), onlyFrom: ofTheGarden},
		{from: kubeAPIServer, to: publicNetworks, ports: everyPort, onlyFrom: ofTheGarden},
		{from: kubeAPIServer, to: privateNetworks, ports: everyPort, onlyFrom: ofTheGarden},

		{from: kubeAPIServer, to: dns, ports: resolverPorts},
		{from: labelledDNS, to: dns, ports: resolverPorts},
		{from: labelledSeedAPIServer, to: seedAPIServer},
		{from: labelledPublic, to: publicNetworks, ports: everyPort},
		{from: labelledPublic, to: gateway, ports: tcp(443)},
		{from: labelledPrivate, to: privateNetworks, ports: everyPort},
		{from: labelledPrivate, to: gateway, ports: tcp(443)},
		{from: labelledBlocked, to: blockedNetworks, ports: everyPort},

		{from: machines, to: machines, ports: everyPort, sameNamespace: true},
		{from: machines, to: gateway, ports: gatewayPorts},
		{from: machines, to: dns, ports: resolverPorts},
		{from: machines, to: nodes, ports: registryPort},
		{from: machines, to: publicNetworks, ports: everyPort},
	}
	if !v.WithoutVPN {
		list = append(list, connectionsOf(vpnSeedServer)...)
	}
	if !v.WithoutVPN && v.HighlyAvailable {
		list = append(list, connectionsOf(secondVPNSeedServer)...)
	}
	if v.HighlyAvailable {
		list = append(list,
			connection{from: mainMembers, to: mainMembers, ports: etcdMemberPorts, sameNamespace: true},
			connection{from: eventsMembers, to: eventsMembers, ports: etcdMemberPorts, sameNamespace: true},
		)
	}
	if v.BackedUp {
		list = append(list,
			// A store that is elsewhere, as that of a local cloud, is opened by its extension.
			connection{from: labelledBackupStore, to: dns, ports: resolverPorts},
			connection{from: labelledBackupStore, to: publicNetworks, ports: tcp(443)},
			connection{from: labelledBackupStore, to: privateNetworks, ports: tcp(443)},
		)
	}
	return list
}

// connectionsOf the vpn-seed-server of a path. Those of two paths know nothing of each other.
func connectionsOf(seedServer *party) []connection {
	return []connection{
		{from: kubeAPIServer, to: seedServer, ports: tcp(vpn.HTTPConnectPort), sameNamespace: true},
		{from: gateway, to: seedServer, ports: udp(vpn.TunnelPort)},
		// Rekeying begins on either side.
		{from: seedServer, to: gateway, ports: anyDatagram},
	}
}

func seedServerOf(path vpnseedserver.Path) *party {
	return &party{name: path.Named(vpnseedserver.Name), kinds: []Kind{Shoot}, pods: matching(path.Labels())}
}

func (c connection) fromKinds() []Kind { return kindsOr(c.onlyFrom, c.from.kinds) }
func (c connection) toKinds() []Kind   { return kindsOr(c.onlyTo, c.to.kinds) }

func kindsOr(only, kinds []Kind) []Kind {
	if len(only) > 0 {
		return only
	}
	return kinds
}

// peers of one side's policies that stand for the party.
func (p *party) peers(kinds []Kind, sameNamespace bool, v Values) []networkingv1.NetworkPolicyPeer {
	if sameNamespace {
		return []networkingv1.NetworkPolicyPeer{{PodSelector: p.pods.DeepCopy()}}
	}
	var peers []networkingv1.NetworkPolicyPeer
	for _, kind := range kinds {
		peers = append(peers, networkingv1.NetworkPolicyPeer{
			NamespaceSelector: namespaces(kind), PodSelector: p.pods.DeepCopy(),
		})
	}
	if p.others != nil {
		peers = append(peers, p.others(v)...)
	}
	return peers
}

func labelled(name, label string, kinds []Kind) *party {
	return &party{name: name, kinds: kinds, pods: matching(map[string]string{label: Allowed})}
}

func matching(labels map[string]string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: labels}
}

func apps(names ...string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: component.LabelApp, Operator: metav1.LabelSelectorOpIn, Values: names},
	}}
}

// roles are pods of an app with one of some roles.
func roles(app string, names ...string) metav1.LabelSelector {
	return metav1.LabelSelector{
		MatchLabels: map[string]string{component.LabelApp: app},
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: component.LabelRole, Operator: metav1.LabelSelectorOpIn, Values: names},
		},
	}
}

func tcp(ports ...int32) []networkingv1.NetworkPolicyPort {
	return policyPorts(corev1.ProtocolTCP, ports)
}
func udp(ports ...int32) []networkingv1.NetworkPolicyPort {
	return policyPorts(corev1.ProtocolUDP, ports)
}

func policyPorts(protocol corev1.Protocol, ports []int32) []networkingv1.NetworkPolicyPort {
	list := make([]networkingv1.NetworkPolicyPort, 0, len(ports))
	for _, port := range ports {
		list = append(list, networkingv1.NetworkPolicyPort{Protocol: new(protocol), Port: new(intstr.FromInt32(port))})
	}
	return list
}
