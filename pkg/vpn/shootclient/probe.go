package shootclient

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/trellis-garden/trellis/pkg/vpn"
)

const (
	probeTimeout   = time.Second
	resolveTimeout = 5 * time.Second
)

// probe sends a number to the seed's echo and says whether it came back in time.
func probe(ctx context.Context, seed netip.Addr, number uint64) bool {
	target := netip.AddrPortFrom(seed, vpn.EchoPort)
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", target.String())
	if err != nil {
		return false
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()

	if _, err := conn.Write(binary.BigEndian.AppendUint64(nil, number)); err != nil {
		return false
	}
	answer := make([]byte, 16)
	for {
		n, err := conn.Read(answer)
		if err != nil {
			return false
		}
		if n == 8 && binary.BigEndian.Uint64(answer) == number {
			return true
		}
	}
}

// resolveEndpoint returns an address of host:port: the best one first, and another with each further attempt.
func resolveEndpoint(ctx context.Context, endpoint string, attempt int) (netip.AddrPort, error) {
	host, portText, err := net.SplitHostPort(endpoint)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("endpoint %q is not host:port: %w", endpoint, err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("port of endpoint %q: %w", endpoint, err)
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("resolving endpoint: %w", err)
	}
	if len(addresses) == 0 {
		return netip.AddrPort{}, errors.New("endpoint " + host + " has no address")
	}
	return netip.AddrPortFrom(addresses[attempt%len(addresses)].Unmap(), uint16(port)), nil
}

// waitForEndpoint resolves the endpoint for the first time. DNS may well start after this process.
func waitForEndpoint(ctx context.Context, config Config) (netip.AddrPort, error) {
	for {
		endpoint, err := resolveEndpoint(ctx, config.Endpoint, 0)
		if err == nil {
			return endpoint, nil
		}
		config.Log.Info("Cannot resolve the gateway, trying again", "endpoint", config.Endpoint, "reason", err.Error())
		if !sleep(ctx, time.Second) {
			return netip.AddrPort{}, err
		}
	}
}
