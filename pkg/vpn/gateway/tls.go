package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-garden/trellis/pkg/vpn"
	"github.com/trellis-garden/trellis/pkg/vpn/clienthello"
	"github.com/trellis-garden/trellis/pkg/vpn/health"
	"github.com/trellis-garden/trellis/pkg/vpn/proxyprotocol"
	"github.com/trellis-garden/trellis/pkg/vpn/splice"
)

const (
	// helloTimeout is how long a client may take to say what it wants. Clients of Kubernetes give a handshake ten
	// seconds, and take an alert before that for the last word; so it is theirs to give up, also on a machine that is
	// overloaded. Who waits for nothing makes room for others long before (Limits.Handshakes).
	helloTimeout = 30 * time.Second
	// dialTimeout is how long a Service may take to accept.
	dialTimeout = 5 * time.Second
	// lingerTimeout is how long a refused client may take to read the alert.
	lingerTimeout = 2 * time.Second
	// holdTimeout is how long a client waits for the routes of a gateway that has just begun. Clients of Kubernetes
	// give a handshake ten seconds.
	holdTimeout = 9 * time.Second
)

// Streams forwards TCP connections by host name. Its methods may be called concurrently.
type Streams struct {
	log    logr.Logger
	routes atomic.Pointer[Routes]
	// complete is closed when all routes are known.
	complete     chan struct{}
	completeOnce sync.Once
	// tls and proxy are the places of the two listeners.
	tls, proxy *slots
	// patience is how long a client may take to say which host it wants.
	patience time.Duration
	// hold is how long it waits until all routes are known.
	hold time.Duration

	accepted, refused atomic.Uint64
}

// NewStreams returns Streams without routes, whose two listeners have the limits each.
func NewStreams(log logr.Logger, limits Limits) *Streams {
	s := &Streams{
		log: log, tls: newSlots(limits), proxy: newSlots(limits), patience: helloTimeout, hold: holdTimeout,
		complete: make(chan struct{}),
	}
	s.SetRoutes(Routes{})
	return s
}

// SetRoutes replaces the routes; open connections stay. Clients that wait for all routes go on with the first that are
// complete.
func (s *Streams) SetRoutes(routes Routes) {
	s.routes.Store(&routes)
	if routes.complete {
		s.completeOnce.Do(func() { close(s.complete) })
	}
}

// Metrics returns the counters.
func (s *Streams) Metrics() []prometheus.Collector {
	return []prometheus.Collector{
		health.Gauge("gateway_connections_active", "Connections to Services that are open.",
			func() int { connections, _, _ := s.usage(); return connections }),
		health.Gauge("gateway_handshakes_active", "Connections that did not say yet which host they want.",
			func() int { _, handshakes, _ := s.usage(); return handshakes }),
		health.Counter("gateway_handshakes_evicted_total", "Handshakes that had to make room for others.",
			func() uint64 { _, _, evicted := s.usage(); return evicted }),
		health.Counter("gateway_connections_accepted_total", "Connections that were led to a Service.",
			s.accepted.Load),
		health.Counter("gateway_connections_refused_total", "Connections that were led nowhere.", s.refused.Load),
		health.Gauge("gateway_routes", "Hosts that lead somewhere.", func() int { return s.routes.Load().Len() }),
	}
}

// usage is that of both ports.
func (s *Streams) usage() (connections, handshakes int, evicted uint64) {
	tlsConnections, tlsHandshakes, tlsEvicted := s.tls.usage()
	proxyConnections, proxyHandshakes, proxyEvicted := s.proxy.usage()
	return tlsConnections + proxyConnections, tlsHandshakes + proxyHandshakes, tlsEvicted + proxyEvicted
}

// ServeTLS routes connections by the server name of their TLS handshake until ctx is done.
func (s *Streams) ServeTLS(ctx context.Context, listener net.Listener) error {
	return s.serve(ctx, listener, s.tls, nameFromTLS)
}

// ServeProxy routes connections by the authority of their PROXY protocol header until ctx is done. Connections are
// limited by the address they come from, not by the source in the header, which anybody may write.
func (s *Streams) ServeProxy(ctx context.Context, listener net.Listener) error {
	return s.serve(ctx, listener, s.proxy, nameFromProxy)
}

// nameFunc reads the host name that a client wants, and returns what it read that the backend has to see.
type nameFunc func(io.Reader) (host string, read []byte, err error)

func nameFromTLS(r io.Reader) (string, []byte, error) { return clienthello.Read(r) }

func nameFromProxy(r io.Reader) (string, []byte, error) {
	header, err := proxyprotocol.Read(r)
	if err == nil && header.Authority == "" {
		err = fmt.Errorf("%w: no authority", proxyprotocol.ErrInvalid)
	}
	return header.Authority, nil, err
}

func (s *Streams) serve(ctx context.Context, listener net.Listener, slots *slots, name nameFunc) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	for {
		conn, err := listener.Accept()
		if err == nil {
			client := conn.(*net.TCPConn)
			ctx, cancel := context.WithCancel(ctx)
			place := slots.enter(vpn.SourceOf(client.RemoteAddr().(*net.TCPAddr).AddrPort()), func() {
				abort(client)
				cancel()
			})
			go func() {
				defer cancel()
				s.handle(ctx, client, slots, place, name)
			}()
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		// Only a lack of file descriptors or memory comes here; it passes.
		s.log.Error(err, "Cannot accept connections", "address", listener.Addr())
		if !wait(ctx, 100*time.Millisecond) {
			return nil
		}
	}
}

// abort ends a connection without leaving anything of it in the kernel.
func abort(client *net.TCPConn) {
	_ = client.SetLinger(0)
	_ = client.Close()
}

func (s *Streams) handle(ctx context.Context, client *net.TCPConn, slots *slots, place *handshake, name nameFunc) {
	defer client.Close()
	defer slots.leave(place)
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer stop()
	stream, err := s.open(ctx, client, slots, place, name)
	defer stream.release()
	if err != nil {
		s.refused.Add(1)
		s.log.V(1).Info("Connection refused", "client", client.RemoteAddr(), "reason", err.Error())
		if !errors.Is(err, errFull) {
			refuseTLS(client, err)
		}
		return
	}
	s.accepted.Add(1)
	sent, received, err := splice.Join(ctx, splice.PrependBytes(client, stream.read), stream.backend)
	s.log.V(2).Info("Connection ended", "client", client.RemoteAddr(), "sent", sent, "received", received, "error", err)
}

// errUnknownHost says that no route has the host.
var errUnknownHost = errors.New("no TLSRoute for host")

// stream is a connection to a Service.
type stream struct {
	backend *net.TCPConn
	// read is what was read from the client and the Service has to see.
	read []byte
	// release gives up the place of the connection.
	release func()
}

// open reads which host the client wants and connects to its backend. A place that it took is to be released also when
// it fails.
func (s *Streams) open(ctx context.Context, client *net.TCPConn, slots *slots, place *handshake,
	name nameFunc) (stream, error) {
	opened := stream{release: func() {}}
	_ = client.SetReadDeadline(time.Now().Add(s.patience))
	host, read, err := name(client)
	if err != nil {
		return opened, err
	}
	_ = client.SetReadDeadline(time.Time{})
	s.awaitRoutes(ctx)
	backend, ok := s.routes.Load().Lookup(host)
	if !ok {
		return opened, fmt.Errorf("%w %q", errUnknownHost, host)
	}
	if !backend.Address.IsValid() {
		return opened, fmt.Errorf("host %q: %s", host, backend.Reason)
	}
	release, err := slots.connect(place, backend.Route)
	if err != nil {
		return opened, fmt.Errorf("host %q: %w", host, err)
	}
	opened.release = release
	dialer := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: splice.KeepAlive}
	conn, err := dialer.DialContext(ctx, "tcp", backend.Address.String())
	if err != nil {
		return opened, fmt.Errorf("host %q: Service %s: %w", host, backend.Service, err)
	}
	opened.backend, opened.read = conn.(*net.TCPConn), read
	return opened, nil
}

// awaitRoutes holds a client back until all routes are known, for a moment: kubectl and others give up when they are
// refused. It keeps its place among the handshakes, and goes at once when ctx is done.
func (s *Streams) awaitRoutes(ctx context.Context) {
	timer := time.NewTimer(s.hold)
	defer timer.Stop()
	select {
	case <-s.complete:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// refuseTLS sends an alert and waits for the client to read it: closing at once could reset the connection first.
func refuseTLS(client *net.TCPConn, err error) {
	_ = client.SetDeadline(time.Now().Add(lingerTimeout))
	if _, err := client.Write(clienthello.Alert(alertFor(err))); err != nil {
		return
	}
	_ = client.CloseWrite()
	_, _ = io.CopyN(io.Discard, client, 1<<14)
}

func alertFor(err error) byte {
	switch {
	case errors.Is(err, errUnknownHost), errors.Is(err, clienthello.ErrNoServerName):
		return clienthello.AlertUnrecognizedName
	case errors.Is(err, clienthello.ErrNotTLS), errors.Is(err, proxyprotocol.ErrInvalid):
		return clienthello.AlertDecodeError
	default:
		return clienthello.AlertInternalError
	}
}
