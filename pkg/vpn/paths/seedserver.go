package paths

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/trellis-garden/trellis/pkg/egress/dialer"
	"github.com/trellis-garden/trellis/pkg/tlsfiles"
	"github.com/trellis-garden/trellis/pkg/vpn"
	"github.com/trellis-garden/trellis/pkg/vpn/connectproxy"
	"github.com/trellis-garden/trellis/pkg/vpn/splice"
)

const (
	// maxReason is how much is read of why the shoot does not answer.
	maxReason = 1 << 10
	// connectTimeout is for connections within the seed.
	connectTimeout = 2 * time.Second
	// idleTimeout closes the connection of probes when there are none any more.
	idleTimeout = 30 * time.Second
)

// seedServer is the path through one vpn-seed-server.
type seedServer struct {
	host   string
	dial   connectproxy.DialFunc
	probes *http.Client
	url    string
}

// SeedServer is the path through a vpn-seed-server whose proxy is at host:port. The files hold the client's certificate
// and the authority of the proxy.
func SeedServer(address string, files tlsfiles.Files, log logr.Logger) (Path, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("the proxy of a path is not host:port: %w", err)
	}
	tcp := &resolved{direct: net.Dialer{Timeout: connectTimeout, KeepAliveConfig: splice.KeepAlive}}
	d, err := dialer.For(dialer.Proxy{Name: host, Address: address, Connect: tcp.dial}, files, log)
	if err != nil {
		return nil, err
	}
	config, err := tlsfiles.ClientConfig(files, log)
	if err != nil {
		return nil, fmt.Errorf("the client's certificate for %s: %w", address, err)
	}
	transport := &http.Transport{IdleConnTimeout: idleTimeout}
	transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialTLS(ctx, tcp, config(), host, network, address)
	}
	return &seedServer{
		host: host, dial: connectproxy.Through(d.DialContext), probes: &http.Client{Transport: transport},
		url: "https://" + address + vpn.AnswersPath,
	}, nil
}

// dialTLS is bounded: package net/http goes on with it when the probe has ended.
func dialTLS(
	ctx context.Context, tcp *resolved, config *tls.Config, host, network, address string,
) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	raw, err := tcp.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	config = config.Clone()
	config.ServerName = host
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

// String implements Path.
func (s *seedServer) String() string { return s.host }

// Probe implements Path. Probes share a connection.
func (s *seedServer) Probe(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return err
	}
	response, err := s.probes.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	reason, err := io.ReadAll(io.LimitReader(response.Body, maxReason))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(reason)))
	}
	return nil
}

// Dial implements Path.
func (s *seedServer) Dial(ctx context.Context, address string) (splice.Conn, error) {
	return s.dial(ctx, address)
}

// resolved dials the address that it reached last, and resolves the name again when that is not reached any more: the
// address of a Service stays, and DNS may be what has failed together with the other path.
type resolved struct {
	direct net.Dialer
	last   atomic.Pointer[netip.AddrPort]
}

func (r *resolved) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if last := r.last.Load(); last != nil {
		conn, err := r.direct.DialContext(ctx, network, last.String())
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
	}
	conn, err := r.direct.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if remote, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		r.last.Store(new(remote.AddrPort()))
	}
	return conn, nil
}
