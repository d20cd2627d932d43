// Package seedserver is the seed's end of the tunnel: an unprivileged WireGuard device on a network stack inside the
// process, and an HTTP CONNECT proxy into it for kube-apiserver.
package seedserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/trellis-garden/trellis/pkg/vpn"
	"github.com/trellis-garden/trellis/pkg/vpn/connectproxy"
	"github.com/trellis-garden/trellis/pkg/vpn/health"
	"github.com/trellis-garden/trellis/pkg/vpn/netstack"
	"github.com/trellis-garden/trellis/pkg/vpn/splice"
	"github.com/trellis-garden/trellis/pkg/vpn/tlsfiles"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard"
)

// Config configures a Server.
type Config struct {
	// PrivateKey is the seed's key; PeerPublicKey the shoot's.
	PrivateKey, PeerPublicKey wgtypes.Key
	// ListenPort is WireGuard's UDP port.
	ListenPort int
	// Addresses are the seed's own addresses inside the tunnel.
	Addresses []netip.Addr
	// AllowedIPs are the networks that are reached through the tunnel: the shoot's end and its nodes, pods and services.
	AllowedIPs []netip.Prefix
	// MTU of the tunnel.
	MTU int
	// ClusterDNS is the shoot's DNS server; when invalid, names are refused.
	ClusterDNS netip.Addr
	// ClusterDomain is appended to names that end in .svc.
	ClusterDomain string
	// ProxyAddress is where the CONNECT proxy listens, with TLS from the files.
	ProxyAddress string
	TLS          tlsfiles.Files
	// HealthAddress is where /healthz, /readyz, /tunnel and /metrics are served.
	HealthAddress string
	// Log receives what happens.
	Log logr.Logger
}

// Server is the seed's end of one shoot's tunnel.
type Server struct {
	config Config
	device wireguard.Device
	net    *netstack.Stack
	proxy  *connectproxy.Proxy
	ready  atomic.Bool
}

// New opens the WireGuard device. Close releases it.
func New(config Config) (*Server, error) {
	if len(config.Addresses) == 0 {
		return nil, errors.New("the seed needs an address inside the tunnel")
	}
	stack, tunDevice, err := netstack.New(config.Addresses, config.MTU)
	if err != nil {
		return nil, fmt.Errorf("creating network stack: %w", err)
	}
	device, err := wireguard.NewUserspace(config.Log.WithName("wireguard"), tunDevice, wireguard.Config{
		PrivateKey: config.PrivateKey,
		ListenPort: config.ListenPort,
		Peer:       wireguard.Peer{PublicKey: config.PeerPublicKey, AllowedIPs: config.AllowedIPs},
	})
	if err != nil {
		return nil, err
	}
	s := &Server{config: config, device: device, net: stack}
	s.proxy = &connectproxy.Proxy{Dial: s.Dial, Log: config.Log.WithName("proxy")}
	return s, nil
}

// Close ends the device and with it every connection through the tunnel.
func (s *Server) Close() error { return s.device.Close() }

// Stats returns the state of the tunnel.
func (s *Server) Stats() (wireguard.Stats, error) { return s.device.Stats() }

// Run serves until ctx is done.
func (s *Server) Run(ctx context.Context) error {
	tlsConfig, err := tlsfiles.ServerConfig(s.config.TLS)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{KeepAliveConfig: splice.KeepAlive}).Listen(ctx, "tcp", s.config.ProxyAddress)
	if err != nil {
		return fmt.Errorf("HTTP CONNECT proxy: %w", err)
	}
	s.ready.Store(true)
	s.config.Log.Info("Serving", "proxy", s.config.ProxyAddress, "wireguardPort", s.config.ListenPort, "allowedIPs", s.config.AllowedIPs)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.proxy.Serve(ctx, listener, tlsConfig) })
	group.Go(func() error { return s.RunEcho(ctx) })
	group.Go(func() error { return s.health().Run(ctx, s.config.HealthAddress) })
	return group.Wait()
}

func (s *Server) health() health.Server {
	return health.Server{
		Ready: func() error {
			if !s.ready.Load() {
				return errors.New("listeners are not open yet")
			}
			return nil
		},
		Tunnel:  s.device.Stats,
		Metrics: append(s.proxy.Metrics("vpn_proxy"), tunnelMetrics{s.device.Stats}),
	}
}

// tunnelMetrics collects what the WireGuard device knows; nothing while it cannot tell, and no time before the first handshake.
type tunnelMetrics struct {
	stats func() (wireguard.Stats, error)
}

var (
	receivedBytes = prometheus.NewDesc("vpn_tunnel_received_bytes_total", "Encrypted bytes that came through the tunnel.", nil, nil)
	sentBytes     = prometheus.NewDesc("vpn_tunnel_sent_bytes_total", "Encrypted bytes that were sent through the tunnel.", nil, nil)
	lastHandshake = prometheus.NewDesc("vpn_tunnel_last_handshake_timestamp_seconds", "When the last handshake was.", nil, nil)
)

// Describe implements prometheus.Collector.
func (tunnelMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- receivedBytes
	to <- sentBytes
	to <- lastHandshake
}

// Collect implements prometheus.Collector.
func (m tunnelMetrics) Collect(to chan<- prometheus.Metric) {
	stats, err := m.stats()
	if err != nil {
		return
	}
	to <- prometheus.MustNewConstMetric(receivedBytes, prometheus.CounterValue, float64(stats.ReceivedBytes))
	to <- prometheus.MustNewConstMetric(sentBytes, prometheus.CounterValue, float64(stats.SentBytes))
	if !stats.LastHandshake.IsZero() {
		to <- prometheus.MustNewConstMetric(lastHandshake, prometheus.GaugeValue, float64(stats.LastHandshake.Unix()))
	}
}

// RunEcho returns every datagram that comes to the echo port inside the tunnel to its sender until ctx is done. The shoot's
// end probes the tunnel with it. Run does this too.
func (s *Server) RunEcho(ctx context.Context) error {
	conn, err := s.net.ListenUDP(netip.AddrPortFrom(s.config.Addresses[0], vpn.EchoPort))
	if err != nil {
		return fmt.Errorf("echo inside the tunnel: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	buf := make([]byte, 64)
	for {
		n, from, err := conn.ReadFrom(buf)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("echo inside the tunnel: %w", err)
		}
		// A lost answer is what the prober is there to notice.
		_, _ = conn.WriteTo(buf[:n], from)
	}
}
