// Package vpn holds what the two ends of the tunnel between a seed and a shoot, and the gateway between them, agree
// on: addresses and ports; labels are in pkg/apis/vpn. The parts themselves live in the packages below it; none of them
// knows garden types. They know each other by package transport, and none but wireguard knows WireGuard: cmd/vpn
// chooses it in one file. Its name stands elsewhere only where users or charts write it (wireGuardPort of gardenlet's
// configuration, --wireguard-address, names of ports) and where its keys are made.
//
//	kube-apiserver ─CONNECT─▶ seedserver ◀─tunnel─ gateway (relay) ◀─tunnel─ shootclient
//	kube-apiserver ─CONNECT─▶ paths ─CONNECT─▶ one of two seedservers, in highly available control planes
//	shootclient ─▶ nodes, pods, services
//	kubectl, kubelets ─TLS─▶ gateway (clienthello) ─▶ kube-apiserver
//	pods of a shoot ─▶ apiserverproxy ─PROXY v2─▶ gateway (proxyprotocol) ─▶ kube-apiserver
package vpn

import (
	"net/netip"
	"time"
)

const (
	// TunnelPort is the UDP port of the gateway and of every vpn-seed-server.
	TunnelPort = 51820
	// HTTPConnectPort is the TCP port of the HTTP CONNECT proxy in vpn-seed-server.
	HTTPConnectPort = 9443
	// EchoPort is the UDP port on the seed's tunnel address that returns what it receives. The shoot probes it.
	EchoPort = 7
	// AnswersPath, asked of that proxy by GET, says whether the shoot answers through the tunnel: 200 or 503.
	AnswersPath = "/answers"

	// DefaultMTU fits a packet of the tunnel (WireGuard adds 80 bytes over IPv6) into the 1450 bytes that a VXLAN
	// overlay leaves, with a little to spare for clouds that take more.
	DefaultMTU = 1360
	// Keepalive is how often an idle shoot sends a packet, so that address translators on the way keep their state.
	Keepalive = 12 * time.Second
)

var (
	// SeedAddress is the seed's address inside the tunnel.
	SeedAddress = netip.MustParseAddr("192.168.123.1")
	// SeedAddress6 is the seed's IPv6 address inside the tunnel.
	SeedAddress6 = netip.MustParseAddr("fd8f:6d53:b97a:1::1")
	// ShootAddress is the shoot's address inside the tunnel.
	ShootAddress = netip.MustParseAddr("192.168.123.2")
	// TunnelNetwork is the network of both.
	TunnelNetwork = netip.MustParsePrefix("192.168.123.0/24")
)
