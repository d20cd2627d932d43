// Package v1alpha1 has the names in vpn.trellis.garden, and those of Services of a seed, by which the VPN's processes,
// gardenlet and extensions find what is meant for them. There are no kinds: it imports nothing, so that the VPN does
// not carry the garden's types.
package v1alpha1

const (
	// LabelTunnel marks the Services that the gateway forwards tunnels to, with value "true".
	LabelTunnel = "vpn.trellis.garden/wireguard"
	// AnnotationPublicKey on such a Service is the base64 public key of the tunnel's server behind it. On a Namespace
	// these are the keys that were given to it, separated by commas: its Services may have no others, and those of
	// other namespaces none of these.
	AnnotationPublicKey = "vpn.trellis.garden/public-key"
	// AnnotationHosts on a Namespace are the host names that were given to it, separated by commas: its TLSRoutes may
	// have no others, and those of other namespaces none of these.
	AnnotationHosts = "vpn.trellis.garden/hosts"

	// ServedAPIs is the name of a Service in the namespace of a control plane. What is behind its port
	// egress.ServedAPIsPort, and nothing else, is reached from a cluster without workers: an extension serves an API of
	// that cluster there.
	ServedAPIs = "served-apis"
)
