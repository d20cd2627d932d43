package server

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
)

// Names of the cloud's own chains. Nothing else on the node writes to them; the built-in chains only jump to them.
const (
	chainForward = "TRELLIS-LOCAL-CLOUD"
	chainInput   = "TRELLIS-LOCAL-CLOUD-IN"
	chainOutput  = "TRELLIS-LOCAL-CLOUD-OUT"
	chainDNS     = "TRELLIS-LOCAL-CLOUD-DNS"
)

// bastionMark is on packets that the cloud itself sends for bastions. In the network of the node whoever has
// CAP_NET_ADMIN can set it, from Linux 5.17 on also with CAP_NET_RAW, as containers have by default: a pod of the
// host's network reaches SSH of machines by it, and needs a key there. Packets from other network namespaces lose their
// mark on the way. Marks of kube-proxy and of CNI plugins have other bits.
const bastionMark = 0x22000000

// chainJump is a rule of a built-in chain that sends packets to one of the cloud's chains.
type chainJump struct {
	table, from, to string
}

var jumps = []chainJump{
	{table: "filter", from: "FORWARD", to: chainForward},
	{table: "filter", from: "INPUT", to: chainInput},
	{table: "filter", from: "OUTPUT", to: chainOutput},
	{table: "nat", from: "PREROUTING", to: chainDNS},
}

// Services are the addresses and ports of the node that machines may use.
type Services struct {
	// Node is the address at which gateway, registry and DNS are served.
	Node netip.Addr
	// TCP and UDP are the ports that machines may dial at Node. Port 53 is redirected to DNSPort.
	TCP, UDP []uint16
	// DNSPort is where the cloud answers DNS.
	DNSPort uint16
}

// renderFirewall gives the cloud's chains in the format of iptables-restore (to be applied with --noflush, which
// replaces just these chains, all rules of a table at once). What it promises for each network:
//   - nothing opens a connection into it, neither from other networks, pods nor from the node itself, but for SSH that
//     bastions of the cloud lead to its machines;
//   - its machines reach each other, and of the rest only the services of the node;
//   - answers within established connections pass.
func renderFirewall(networks []api.Network, services Services) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("*filter")
	for _, chain := range []string{chainForward, chainInput, chainOutput} {
		line(":%s - [0:0]", chain)
	}
	for _, network := range networks {
		bridge := network.Bridge
		line("-A %s -i %s -o %s -j ACCEPT", chainForward, bridge, bridge)
		line("-A %s -o %s -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", chainForward, bridge)
		line("-A %s -o %s -j REJECT --reject-with icmp-admin-prohibited", chainForward, bridge)
		line("-A %s -i %s -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", chainForward, bridge)
		// A service of the node may be a pod behind a host port: then the packet is forwarded after its destination was
		// rewritten.
		line("-A %s -i %s -m conntrack --ctstate DNAT --ctorigdst %s -j ACCEPT", chainForward, bridge, services.Node)
		line("-A %s -i %s -j REJECT --reject-with icmp-admin-prohibited", chainForward, bridge)
	}
	for _, network := range networks {
		bridge := network.Bridge
		line("-A %s -i %s -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", chainInput, bridge)
		line("-A %s -i %s -p icmp -j ACCEPT", chainInput, bridge)
		for _, port := range services.TCP {
			line("-A %s -i %s -d %s -p tcp --dport %d -j ACCEPT", chainInput, bridge, services.Node, port)
		}
		for _, port := range services.UDP {
			line("-A %s -i %s -d %s -p udp --dport %d -j ACCEPT", chainInput, bridge, services.Node, port)
		}
		line("-A %s -i %s -j REJECT --reject-with icmp-admin-prohibited", chainInput, bridge)
		line("-A %s -o %s -p tcp --dport %d -m mark --mark %#x -j ACCEPT", chainOutput, bridge, sshPort, bastionMark)
		line("-A %s -o %s -m conntrack --ctstate NEW -j REJECT --reject-with icmp-admin-prohibited", chainOutput,
			bridge)
	}
	line("COMMIT")

	line("*nat")
	line(":%s - [0:0]", chainDNS)
	for _, network := range networks {
		for _, protocol := range []string{"udp", "tcp"} {
			line("-A %s -i %s -d %s -p %s --dport 53 -j DNAT --to-destination %s:%d", chainDNS, network.Bridge,
				services.Node, protocol, services.Node, services.DNSPort)
		}
	}
	line("COMMIT")
	return b.String()
}
