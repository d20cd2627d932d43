// Package apiserverproxy gives the pods of a shoot an address on their own node that leads to the shoot's API server.
// The API server advertises that address as the endpoint of the Service "kubernetes", and clients of an address send no
// server name; so the proxy tells the gateway the host name in a PROXY protocol header.
package apiserverproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"

	"github.com/trellis-garden/trellis/pkg/vpn/health"
	"github.com/trellis-garden/trellis/pkg/vpn/netif"
	"github.com/trellis-garden/trellis/pkg/vpn/proxyprotocol"
	"github.com/trellis-garden/trellis/pkg/vpn/splice"
)

const (
	dialTimeout       = 5 * time.Second
	loopbackInterface = "lo"
)

// Config configures a Proxy.
type Config struct {
	// Listen is the address that pods connect to; it is added to the loopback interface.
	Listen netip.AddrPort
	// Gateway is host:port of the seed's gateway that takes PROXY protocol headers.
	Gateway string
	// Authority is the host name of the shoot's API server at the gateway.
	Authority string
	// HealthAddress is where /healthz and /readyz are served; empty serves none.
	HealthAddress string
	// Log receives what happens.
	Log logr.Logger
}

// Run adds the address and serves until ctx is done. The address stays: the next proxy on this node takes over, and
// until then clients are refused at once instead of waiting for nothing.
func Run(ctx context.Context, config Config) error {
	if err := addAddress(config.Listen.Addr()); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{KeepAliveConfig: splice.KeepAlive}).Listen(ctx, "tcp", config.Listen.String())
	if err != nil {
		return fmt.Errorf("apiserver-proxy: %w", err)
	}
	config.Log.Info("Serving", "address", config.Listen, "gateway", config.Gateway, "authority", config.Authority)
	p := &Proxy{config: config}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.Serve(ctx, listener) })
	if config.HealthAddress != "" {
		endpoints := health.Server{Ready: p.ready, Metrics: p.Metrics()}
		group.Go(func() error { return endpoints.Run(ctx, config.HealthAddress) })
	}
	return group.Wait()
}

// addAddress puts the address on the loopback interface of this network namespace, where it may be already.
func addAddress(address netip.Addr) error {
	if address.IsLoopback() {
		return nil
	}
	link, err := netlink.LinkByName(loopbackInterface)
	if err != nil {
		return fmt.Errorf("finding interface %s: %w", loopbackInterface, err)
	}
	ipNet := netif.IPNet(netip.PrefixFrom(address, address.BitLen()))
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: &ipNet}); err != nil {
		return fmt.Errorf("adding %s to %s: %w (is NET_ADMIN granted?)", address, loopbackInterface, err)
	}
	return nil
}

// Proxy forwards connections to the gateway.
type Proxy struct {
	config Config

	active, accepted, failed atomic.Int64
	// lastFailure is the error of the latest connection, nil when it worked.
	lastFailure atomic.Pointer[error]
}

// New returns a Proxy for callers that open the listener themselves.
func New(config Config) *Proxy { return &Proxy{config: config} }

// Serve forwards the listener's connections until ctx is done.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var connections sync.WaitGroup
	defer connections.Wait()
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("apiserver-proxy: %w", err)
		}
		if err != nil {
			// Only a lack of file descriptors or memory comes here; it passes.
			p.config.Log.Error(err, "Cannot accept connections")
			continue
		}
		connections.Go(func() { p.handle(ctx, conn.(*net.TCPConn)) })
	}
}

func (p *Proxy) handle(ctx context.Context, client *net.TCPConn) {
	p.active.Add(1)
	defer p.active.Add(-1)
	defer client.Close()
	gateway, err := p.dial(ctx, client)
	if err != nil {
		p.failed.Add(1)
		p.lastFailure.Store(&err)
		p.config.Log.Info("Cannot reach the API server", "client", client.RemoteAddr(), "reason", err.Error())
		return
	}
	p.accepted.Add(1)
	p.lastFailure.Store(nil)
	sent, received, err := splice.Join(ctx, client, gateway)
	p.config.Log.V(2).Info("Connection ended", "client", client.RemoteAddr(), "sent", sent, "received", received,
		"error", err)
}

func (p *Proxy) dial(ctx context.Context, client *net.TCPConn) (*net.TCPConn, error) {
	dialer := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: splice.KeepAlive}
	conn, err := dialer.DialContext(ctx, "tcp", p.config.Gateway)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	header := proxyprotocol.Header{
		Source:      addrPort(client.RemoteAddr()),
		Destination: addrPort(client.LocalAddr()),
		Authority:   p.config.Authority,
	}
	if _, err := conn.Write(header.Append(nil)); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return conn.(*net.TCPConn), nil
}

func (p *Proxy) ready() error {
	if failure := p.lastFailure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// Metrics returns the counters.
func (p *Proxy) Metrics() []prometheus.Collector {
	return []prometheus.Collector{
		health.Gauge("apiserver_proxy_connections_active", "Connections that are open.", p.active.Load),
		health.Counter("apiserver_proxy_connections_accepted_total", "Connections of pods that were taken.",
			p.accepted.Load),
		health.Counter("apiserver_proxy_connections_failed_total", "Connections that could not be led to the gateway.",
			p.failed.Load),
	}
}

func addrPort(address net.Addr) netip.AddrPort {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return tcp.AddrPort()
	}
	return netip.AddrPort{}
}
