// Package seedserver serves the seed's end of a tunnel, which is a network stack inside the process: an HTTP CONNECT
// proxy into it for kube-apiserver, which can be asked whether the shoot answers, and an echo that the shoot's end
// probes.
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

	"github.com/trellis-garden/trellis/pkg/tlsfiles"
	"github.com/trellis-garden/trellis/pkg/vpn"
	"github.com/trellis-garden/trellis/pkg/vpn/connectproxy"
	"github.com/trellis-garden/trellis/pkg/vpn/health"
	"github.com/trellis-garden/trellis/pkg/vpn/splice"
	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

// Config configures a Server.
type Config struct {
	// EchoAddress is the seed's own address inside the tunnel that answers probes.
	EchoAddress netip.Addr
	// ShootAddress is the shoot's address inside the tunnel, which is asked whether it answers.
	ShootAddress netip.Addr
	// AllowedIPs are the networks that are reached through the tunnel: the shoot's end and its nodes, pods and
	// services.
	AllowedIPs []netip.Prefix
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
	tunnel transport.SeedEnd
	proxy  *connectproxy.Proxy
	ready  atomic.Bool
}

// New returns a server of a tunnel, which stays the caller's to close.
func New(config Config, tunnel transport.SeedEnd) *Server {
	s := &Server{config: config, tunnel: tunnel}
	s.proxy = &connectproxy.Proxy{Dial: s.Dial, Log: config.Log.WithName("proxy"), Others: s.answers()}
	return s
}

// Run serves until ctx is done.
func (s *Server) Run(ctx context.Context) error {
	tlsConfig, err := tlsfiles.ServerConfig(s.config.TLS, s.config.Log)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{KeepAliveConfig: splice.KeepAlive}).Listen(ctx, "tcp", s.config.ProxyAddress)
	if err != nil {
		return fmt.Errorf("HTTP CONNECT proxy: %w", err)
	}
	s.ready.Store(true)
	s.config.Log.Info("Serving", "proxy", s.config.ProxyAddress, "allowedIPs", s.config.AllowedIPs)

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
		Tunnel:  s.tunnel.Stats,
		Metrics: s.Metrics(),
	}
}

// Metrics returns those of the proxy and of the tunnel.
func (s *Server) Metrics() []prometheus.Collector {
	return append(s.proxy.Metrics("vpn_proxy"), tunnelMetrics{s.tunnel.Stats})
}

// tunnelMetrics collects what this end of the tunnel knows; nothing while it cannot tell, and no time before the first
// handshake.
type tunnelMetrics struct {
	stats func() (transport.Stats, error)
}

var (
	receivedBytes = prometheus.NewDesc("vpn_tunnel_received_bytes_total",
		"Encrypted bytes that came through the tunnel.", nil, nil)
	sentBytes = prometheus.NewDesc("vpn_tunnel_sent_bytes_total",
		"Encrypted bytes that were sent through the tunnel.", nil, nil)
	lastHandshake = prometheus.NewDesc("vpn_tunnel_last_handshake_timestamp_seconds", "When the last handshake was.",
		nil, nil)
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

// RunEcho returns every datagram that comes to the echo port inside the tunnel to its sender until ctx is done. The
// shoot's end probes the tunnel with it. Run does this too.
func (s *Server) RunEcho(ctx context.Context) error {
	conn, err := s.tunnel.ListenUDP(netip.AddrPortFrom(s.config.EchoAddress, vpn.EchoPort))
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
