// Package gateway is the one address of a seed: it hands TLS connections to Services by the host name that clients
// ask for, and packets of tunnels by the server that they are for. It terminates neither.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"syscall"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/trellis-garden/trellis/pkg/vpn/health"
	"github.com/trellis-garden/trellis/pkg/vpn/relay"
	"github.com/trellis-garden/trellis/pkg/vpn/splice"
	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

// Config configures a gateway.
type Config struct {
	// TLSAddress takes TLS connections, ProxyAddress connections that begin with a PROXY protocol v2 header,
	// TunnelAddress UDP packets.
	TLSAddress, ProxyAddress, TunnelAddress string
	// HealthAddress is where /healthz, /readyz and /metrics are served.
	HealthAddress string
	// Streams bounds the TCP connections of each listener, Tunnels tells the packets of tunnels apart.
	Streams Limits
	Tunnels transport.Demultiplexing
	// Cluster is the seed's API server, OperatorNamespace the namespace whose TLSRoutes and Services may have all hosts
	// and keys.
	Cluster           *rest.Config
	OperatorNamespace string
	// Log receives what happens.
	Log logr.Logger
}

// Run serves until ctx is done.
func Run(ctx context.Context, config Config) error {
	listeners, err := listenTCP(ctx, config.TLSAddress, config.ProxyAddress)
	if err != nil {
		return err
	}
	relay, err := relay.Listen(ctx, config.Log.WithName(config.Tunnels.Name()), config.TunnelAddress, config.Tunnels)
	if err != nil {
		return errors.Join(err, listeners[0].Close(), listeners[1].Close())
	}
	limits, err := withinFiles(config.Streams, config.Tunnels.MaxSessions())
	if err != nil {
		return errors.Join(err, listeners[0].Close(), listeners[1].Close())
	}
	if limits != config.Streams {
		config.Log.Info("The limit of open files is too low for all connections", "connections", limits.Connections,
			"handshakes", limits.Handshakes)
	}
	streams := NewStreams(config.Log.WithName("tls"), limits)
	watcher, err := NewWatcher(config.Log.WithName("watch"), config.Cluster, config.OperatorNamespace,
		func(routes Routes, servers []transport.Server) {
			streams.SetRoutes(routes)
			relay.SetServers(servers)
			config.Log.V(1).Info("Routes changed", "hosts", routes.Len(), "servers", len(servers))
		})
	if err != nil {
		return err
	}
	config.Log.Info("Serving",
		"tls", config.TLSAddress, "proxy", config.ProxyAddress, config.Tunnels.Name(), config.TunnelAddress)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return streams.ServeTLS(ctx, listeners[0]) })
	group.Go(func() error { return streams.ServeProxy(ctx, listeners[1]) })
	group.Go(func() error { return relay.Run(ctx) })
	group.Go(func() error { return watcher.Run(ctx) })
	group.Go(func() error { return endpoints(watcher, streams, relay).Run(ctx, config.HealthAddress) })
	return group.Wait()
}

// otherFiles are the file descriptors for all but connections and tunnels: the seed's API server, ports, health checks,
// the runtime.
const otherFiles = 128

// withinFiles fits limits of connections into the files that the process may open, after the sessions of tunnels.
func withinFiles(limits Limits, sessions int) (Limits, error) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return limits, fmt.Errorf("limit of open files: %w", err)
	}
	most := int(min(files.Cur, math.MaxInt32))
	return limits.within(max(most-sessions-otherFiles, most/2)), nil
}

func listenTCP(ctx context.Context, addresses ...string) ([]net.Listener, error) {
	var listeners []net.Listener
	for _, address := range addresses {
		listener, err := (&net.ListenConfig{KeepAliveConfig: splice.KeepAlive}).Listen(ctx, "tcp", address)
		if err != nil {
			for _, open := range listeners {
				_ = open.Close()
			}
			return nil, fmt.Errorf("gateway port: %w", err)
		}
		listeners = append(listeners, listener)
	}
	return listeners, nil
}

func endpoints(watcher *Watcher, streams *Streams, relay *relay.Relay) health.Server {
	return health.Server{
		Ready: func() error {
			select {
			case <-watcher.Synced():
				return nil
			default:
				return errors.New("the seed's Services and Namespaces are not known yet")
			}
		},
		Metrics: slices.Concat(streams.Metrics(), relay.Metrics(), watcher.Metrics()),
	}
}
