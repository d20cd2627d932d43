// Package egress is the one way out of a seed for what acts for tenants. A kube-apiserver asks by HTTP CONNECT, with a
// certificate that names the namespace of its control plane: on one port for addresses of its cluster, which one
// without workers has none of, on another for addresses that a user gave. So does what extensions run for that control
// plane, such as the controllers of a fleet. These are resolved here, decided about, and dialled as they were decided
// about: a name that resolves to something else a moment later gains nothing. The proxy itself, and how it is asked,
// are the packages below: dialer for our own processes, sidecar for those of others.
package egress

import "net/netip"

const (
	// Name of the proxy's Deployment and Service, in the namespace garden of a seed.
	Name = "egress"
	// ClusterPort is where a kube-apiserver asks for addresses of its cluster, OutsidePort where it asks for those that
	// a user gave.
	ClusterPort, OutsidePort = 9443, 9444

	// SidecarAddress is where a process asks that has no egress selector, within its own pod.
	SidecarAddress = "127.0.0.1:9445"

	// Extensions is the organization in the certificates of what extensions run for a control plane.
	Extensions = "extensions"

	// ServedAPIsPort is that of the Service served-apis (in Go vpnv1alpha1.ServedAPIs) of a control plane.
	ServedAPIsPort = 8443
)

// ServedAPIsAddress stands for that Service in EndpointSlices of the cluster, at the port ServedAPIsPort. It is
// nobody's address.
var ServedAPIsAddress = netip.MustParseAddr("240.0.0.2")
