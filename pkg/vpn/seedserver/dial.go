package seedserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/trellis-garden/trellis/pkg/vpn/connectproxy"
	"github.com/trellis-garden/trellis/pkg/vpn/splice"
	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

const (
	// dialTimeout is for a shoot whose tunnel is up.
	dialTimeout = 10 * time.Second
	// dialTimeoutDown is for a shoot whose tunnel is down: long enough for a handshake that is just happening.
	dialTimeoutDown = 3 * time.Second

	dnsPort = 53
)

// Dial opens a TCP connection through the tunnel to host:port, where host is an address of the shoot or a name that the
// shoot's DNS knows.
func (s *Server) Dial(ctx context.Context, address string) (splice.Conn, error) {
	host, port, err := splitAddress(address)
	if err != nil {
		return nil, &connectproxy.DialError{Status: http.StatusBadRequest, Message: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout(time.Now()))
	defer cancel()
	ip, err := s.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	if !contains(s.config.AllowedIPs, ip) {
		return nil, &connectproxy.DialError{Status: http.StatusForbidden, Message: fmt.Sprintf(
			"%s is in none of the shoot's networks (%s)", ip, joinPrefixes(s.config.AllowedIPs))}
	}
	conn, err := s.tunnel.DialTCP(ctx, netip.AddrPortFrom(ip, port))
	if err != nil {
		return nil, s.explain(err, "connecting to "+address)
	}
	return conn, nil
}

func (s *Server) timeout(now time.Time) time.Duration {
	if stats, err := s.tunnel.Stats(); err == nil && stats.Up(now) {
		return dialTimeout
	}
	return dialTimeoutDown
}

func (s *Server) resolve(ctx context.Context, host string) (netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap(), nil
	}
	if !s.config.ClusterDNS.IsValid() {
		return netip.Addr{}, &connectproxy.DialError{Status: http.StatusBadGateway, Message: fmt.Sprintf(
			"seed: %q is a name and this server has no --cluster-dns to resolve it; enable aggregator routing in "+
				"kube-apiserver or set it", host)}
	}
	resolver := s.tunnel.Resolver(netip.AddrPortFrom(s.config.ClusterDNS, dnsPort))
	addresses, err := resolver.LookupNetIP(ctx, "ip", qualify(host, s.config.ClusterDomain))
	if err != nil {
		return netip.Addr{}, s.explain(err,
			fmt.Sprintf("resolving %q at the shoot's DNS %s", host, s.config.ClusterDNS))
	}
	return addresses[0].Unmap(), nil
}

// explain says which end a failure lies at.
func (s *Server) explain(err error, doing string) error {
	stats, statsErr := s.tunnel.Stats()
	if statsErr != nil {
		return &connectproxy.DialError{
			Status: http.StatusBadGateway, Message: fmt.Sprintf("seed: %s: %v", doing, statsErr),
		}
	}
	return explain(err, doing, stats, time.Now())
}

func explain(err error, doing string, tunnel transport.Stats, now time.Time) *connectproxy.DialError {
	const remedy = "; look at the logs of vpn-shoot in the shoot's kube-system and whether its nodes reach the " +
		"gateway's UDP port 51820"
	age := now.Sub(tunnel.LastHandshake).Round(time.Second)
	switch {
	case tunnel.LastHandshake.IsZero():
		return &connectproxy.DialError{Status: http.StatusGatewayTimeout, Message: fmt.Sprintf(
			"tunnel: %s: the shoot never connected%s", doing, remedy)}
	case !tunnel.Up(now):
		return &connectproxy.DialError{Status: http.StatusGatewayTimeout, Message: fmt.Sprintf(
			"tunnel: %s: the shoot last connected %s ago%s", doing, age, remedy)}
	case isTimeout(err):
		return &connectproxy.DialError{Status: http.StatusGatewayTimeout, Message: fmt.Sprintf(
			"shoot: %s: no answer (the tunnel's last handshake was %s ago)", doing, age)}
	default:
		return &connectproxy.DialError{Status: http.StatusBadGateway, Message: fmt.Sprintf("shoot: %s: %v", doing, err)}
	}
}

func isTimeout(err error) bool {
	netErr := net.Error(nil)
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &netErr) && netErr.Timeout()
}

func splitAddress(address string) (host string, port uint16, err error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("address %q is not host:port: %w", address, err)
	}
	number, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || number == 0 {
		return "", 0, fmt.Errorf("address %q has no port between 1 and 65535", address)
	}
	return host, uint16(number), nil
}

// qualify completes the names that kube-apiserver uses for webhooks and aggregated APIs (<service>.<namespace>.svc).
// The dot at the end keeps the search list of this pod, which is the seed's, out of it.
func qualify(name, clusterDomain string) string {
	name = strings.TrimSuffix(name, ".")
	if strings.HasSuffix(name, ".svc") {
		name += "." + clusterDomain
	}
	return name + "."
}

func contains(prefixes []netip.Prefix, ip netip.Addr) bool {
	for _, prefix := range prefixes {
		if prefix.Contains(ip) {
			return true
		}
	}
	return false
}

func joinPrefixes(prefixes []netip.Prefix) string {
	texts := make([]string, 0, len(prefixes))
	for _, prefix := range prefixes {
		texts = append(texts, prefix.String())
	}
	return strings.Join(texts, ", ")
}
