// Package proxy is the way out of a seed for what acts for tenants: HTTP CONNECT with certificates of both sides.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/validation"

	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/tlsfiles"
	"github.com/trellis-garden/trellis/pkg/vpn/connectproxy"
	"github.com/trellis-garden/trellis/pkg/vpn/health"
	"github.com/trellis-garden/trellis/pkg/vpn/splice"
)

const (
	dialTimeout = 10 * time.Second
	// maxConnections at a time, for each port, of which there are two.
	maxConnections = 16384
	// connectionMemory is what an idle connection takes: most of it in the process (TestMemoryOfConnections), the rest
	// in the kernel.
	connectionMemory = 64 << 10
	// maxConnectionsOfClient are those of the kube-apiservers of one control plane, maxConnectionsOfExtensions those of
	// what extensions run for it: a fleet has one for each member, and some for users of members.
	maxConnectionsOfClient, maxConnectionsOfExtensions = 512, 2048
)

// Memory is what all connections take together at most, in bytes.
func Memory() int64 { return 2 * maxConnections * connectionMemory }

// Config of a server.
type Config struct {
	// ClusterAddress, OutsideAddress and HealthAddress are listened on.
	ClusterAddress, OutsideAddress, HealthAddress string
	// TLS is the server's certificate and the authority of the clients, each of which has the namespace of a control
	// plane as its common name.
	TLS tlsfiles.Files
	// Rules decide about addresses that users gave.
	Rules egress.Rules
	// Log receives refusals.
	Log logr.Logger
	// Dial and Resolve default to the network and to its DNS.
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Resolve func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// client is whom connections are counted for.
type client struct{ namespace, organization string }

func clientOf(ctx context.Context) client {
	return client{namespace: connectproxy.Client(ctx), organization: connectproxy.Organization(ctx)}
}

func (c client) maxConnections() int {
	if c.organization == egress.Extensions {
		return maxConnectionsOfExtensions
	}
	return maxConnectionsOfClient
}

// Server is the proxy of a seed.
type Server struct {
	config           Config
	cluster, outside *connectproxy.Proxy
	ready            atomic.Bool

	mutex       sync.Mutex
	connections map[client]int
}

// New returns a server.
func New(config Config) *Server {
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	if config.Resolve == nil {
		config.Resolve = net.DefaultResolver.LookupNetIP
	}
	s := &Server{config: config, connections: map[client]int{}}
	s.cluster = &connectproxy.Proxy{Dial: s.bounded(s.dialCluster), Log: config.Log.WithName("cluster")}
	s.outside = &connectproxy.Proxy{Dial: s.bounded(s.dialOutside), Log: config.Log.WithName("outside")}
	return s
}

// Run listens and serves until ctx is done.
func (s *Server) Run(ctx context.Context) error {
	cluster, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.config.ClusterAddress)
	if err != nil {
		return fmt.Errorf("egress: %w", err)
	}
	defer cluster.Close()
	outside, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.config.OutsideAddress)
	if err != nil {
		return fmt.Errorf("egress: %w", err)
	}
	defer outside.Close()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.Serve(ctx, cluster, outside) })
	group.Go(func() error { return s.health().Run(ctx, s.config.HealthAddress) })
	return group.Wait()
}

// Serve answers who asks for addresses of a cluster, and who asks for those outside, until ctx is done.
func (s *Server) Serve(ctx context.Context, cluster, outside net.Listener) error {
	config, err := tlsfiles.ServerConfig(s.config.TLS, s.config.Log)
	if err != nil {
		return fmt.Errorf("egress: %w", err)
	}
	s.ready.Store(true)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.cluster.Serve(ctx, netutil.LimitListener(cluster, maxConnections), config) })
	group.Go(func() error { return s.outside.Serve(ctx, netutil.LimitListener(outside, maxConnections), config) })
	return group.Wait()
}

func (s *Server) health() health.Server {
	return health.Server{
		Ready: func() error {
			if !s.ready.Load() {
				return errors.New("the certificate is not read yet")
			}
			return nil
		},
		Metrics: s.Metrics(),
	}
}

// Metrics returns the counters of both ports.
func (s *Server) Metrics() []prometheus.Collector {
	return append(s.cluster.Metrics("egress_cluster"), s.outside.Metrics("egress_outside")...)
}

// bounded counts the connections of each client.
func (s *Server) bounded(dial connectproxy.DialFunc) connectproxy.DialFunc {
	return func(ctx context.Context, address string) (splice.Conn, error) {
		client := clientOf(ctx)
		if len(validation.IsDNS1123Label(client.namespace)) > 0 {
			return nil, &connectproxy.DialError{
				Status: http.StatusForbidden, Message: fmt.Sprintf("egress: the client's certificate names %q, "+
					"which is no namespace of a control plane", client.namespace),
			}
		}
		if !s.count(client) {
			return nil, &connectproxy.DialError{
				Status: http.StatusTooManyRequests,
				Message: fmt.Sprintf("egress: %s has %d connections already", client.namespace,
					client.maxConnections()),
			}
		}
		conn, err := dial(ctx, address)
		if err != nil {
			s.discount(client)
			return nil, err
		}
		return &countedConn{Conn: conn, discount: sync.OnceFunc(func() { s.discount(client) })}, nil
	}
}

func (s *Server) count(c client) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.connections[c] >= c.maxConnections() {
		return false
	}
	s.connections[c]++
	return true
}

func (s *Server) discount(c client) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.connections[c]--; s.connections[c] <= 0 {
		delete(s.connections, c)
	}
}

// countedConn is discounted when it is closed.
type countedConn struct {
	splice.Conn
	discount func()
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.discount()
	return c.Conn.Close()
}

// dialCluster reaches what serves APIs of the client's cluster, and nothing else: a cluster without workers has no
// pods, services and nodes, whatever its objects say.
func (s *Server) dialCluster(ctx context.Context, address string) (splice.Conn, error) {
	asked, err := netip.ParseAddrPort(address)
	if err != nil || asked != netip.AddrPortFrom(egress.ServedAPIsAddress, egress.ServedAPIsPort) {
		return nil, &connectproxy.DialError{Status: http.StatusForbidden, Message: fmt.Sprintf(
			"egress: a cluster without workers has no nodes, pods and services that could be reached at %s", address)}
	}
	return s.dial(ctx, net.JoinHostPort(vpnv1alpha1.ServedAPIs+"."+connectproxy.Client(ctx)+".svc",
		strconv.Itoa(egress.ServedAPIsPort)))
}

// dialOutside reaches what the rules allow, at the very address that they were asked about.
func (s *Server) dialOutside(ctx context.Context, address string) (splice.Conn, error) {
	host, port, err := splitAddress(address)
	if err != nil {
		return nil, &connectproxy.DialError{Status: http.StatusBadRequest, Message: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	addresses, err := s.resolve(ctx, host)
	if err != nil {
		return nil, &connectproxy.DialError{
			Status: http.StatusBadGateway, Message: fmt.Sprintf("egress: resolving %q: %v", host, err),
		}
	}
	chosen, err := s.config.Rules.Decide(addresses, port)
	if err != nil {
		return nil, &connectproxy.DialError{Status: http.StatusForbidden, Message: err.Error()}
	}
	return s.dial(ctx, netip.AddrPortFrom(chosen, port).String())
}

// resolve asks for the name as it is: the dot at its end keeps the search list of this pod, which is the seed's, out of
// it.
func (s *Server) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if address, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{address}, nil
	}
	return s.config.Resolve(ctx, "ip", strings.TrimSuffix(host, ".")+".")
}

func (s *Server) dial(ctx context.Context, address string) (splice.Conn, error) {
	conn, err := s.config.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, &connectproxy.DialError{Status: http.StatusBadGateway, Message: fmt.Sprintf("egress: %v", err)}
	}
	return splice.Of(conn)
}

func splitAddress(address string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("egress: address %q is not host:port: %w", address, err)
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil || number == 0 || host == "" {
		return "", 0, fmt.Errorf("egress: address %q has no host, or no port between 1 and 65535", address)
	}
	return host, uint16(number), nil
}
