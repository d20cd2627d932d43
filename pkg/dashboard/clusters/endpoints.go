package clusters

import (
	"context"
	"net"
	"strings"
)

// routed dials hosts of the endpoints' domains at their addresses. TLS goes on to ask for the host.
func routed(direct *net.Dialer, endpoints []Endpoint) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return direct.DialContext(ctx, network, addressFor(endpoints, address))
	}
}

// addressFor is where a host is dialled.
func addressFor(endpoints []Endpoint, address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	for _, endpoint := range endpoints {
		if host == endpoint.Domain || strings.HasSuffix(host, "."+endpoint.Domain) {
			return endpoint.Address
		}
	}
	return address
}
