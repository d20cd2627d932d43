package vpn_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"

	"github.com/trellis-garden/trellis/pkg/egress/proxy"
	"github.com/trellis-garden/trellis/pkg/vpn/apiserverproxy"
	"github.com/trellis-garden/trellis/pkg/vpn/gateway"
	"github.com/trellis-garden/trellis/pkg/vpn/relay"
	"github.com/trellis-garden/trellis/pkg/vpn/seedserver"
	"github.com/trellis-garden/trellis/pkg/vpn/transport"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard/demux"
)

// Dashboards and alerts know these names, and they follow the conventions of Prometheus.
func TestMetricsOfThePrograms(t *testing.T) {
	cases := map[string]struct {
		collectors []prometheus.Collector
		names      []string
	}{
		"gateway": {gatewayMetrics(t), []string{
			"gateway_connections_accepted_total", "gateway_connections_active", "gateway_connections_refused_total",
			"gateway_handshakes_active", "gateway_handshakes_evicted_total", "gateway_routes", "gateway_routes_synced",
			"gateway_wireguard_client_packets_lost_total", "gateway_wireguard_client_packets_total",
			"gateway_wireguard_server_packets_total", "gateway_wireguard_servers", "gateway_wireguard_sessions",
		}},
		"seed-server": {seedserver.New(seedserver.Config{}, tunnelThatIsUp{}).Metrics(), []string{
			"vpn_proxy_connections_active", "vpn_proxy_connections_failed_total", "vpn_proxy_connections_opened_total",
			"vpn_tunnel_last_handshake_timestamp_seconds", "vpn_tunnel_received_bytes_total",
			"vpn_tunnel_sent_bytes_total",
		}},
		"apiserver-proxy": {(&apiserverproxy.Proxy{}).Metrics(), []string{
			"apiserver_proxy_connections_accepted_total", "apiserver_proxy_connections_active",
			"apiserver_proxy_connections_failed_total",
		}},
		"egress": {proxy.New(proxy.Config{}).Metrics(), []string{
			"egress_cluster_connections_active", "egress_cluster_connections_failed_total",
			"egress_cluster_connections_opened_total", "egress_outside_connections_active",
			"egress_outside_connections_failed_total", "egress_outside_connections_opened_total",
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewPedanticRegistry()
			registry.MustRegister(c.collectors...)
			problems, err := testutil.GatherAndLint(registry)
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range problems {
				t.Errorf("%s: %s", problem.Metric, problem.Text)
			}
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, family := range families {
				names = append(names, family.GetName())
			}
			if !slices.Equal(names, c.names) {
				t.Errorf("got %q, want %q", names, c.names)
			}
		})
	}
}

func gatewayMetrics(t *testing.T) []prometheus.Collector {
	t.Helper()
	ignore := func(gateway.Routes, []transport.Server) {}
	watcher, err := gateway.NewWatcher(logr.Discard(), &rest.Config{}, "garden", ignore)
	if err != nil {
		t.Fatal(err)
	}
	tunnels, err := relay.Listen(context.Background(), logr.Discard(), "127.0.0.1:0", demux.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(running(t, tunnels.Run))
	streams := gateway.NewStreams(logr.Discard(), gateway.DefaultLimits)
	return slices.Concat(streams.Metrics(), tunnels.Metrics(), watcher.Metrics())
}

// tunnelThatIsUp has nothing but the figures of a tunnel.
type tunnelThatIsUp struct{ transport.SeedEnd }

func (tunnelThatIsUp) Stats() (transport.Stats, error) {
	return transport.Stats{LastHandshake: time.Now(), HandshakeExpiry: time.Minute}, nil
}
