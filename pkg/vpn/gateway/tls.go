package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/trellis-garden/trellis/pkg/vpn/clienthello"
	"github.com/trellis-garden/trellis/pkg/vpn/proxyprotocol"
	"github.com/trellis-garden/trellis/pkg/vpn/splice"
)

const (
	// helloTimeout is how long a client may take to say which host it wants.
	helloTimeout = 10 * time.Second
	// dialTimeout is how long a Service may take to accept.
	dialTimeout = 5 * time.Second
	// lingerTimeout is how long a refused client may take to read the alert.
	lingerTimeout = 2 * time.Second
)

// Streams forwards TCP connections by host name. Its methods may be called concurrently.
type Streams struct {
	log    logr.Logger
	routes atomic.Pointer[Routes]
	// slots bounds the number of connections.
	slots chan struct{}

	accepted, refused atomic.Uint64
}

// NewStreams returns Streams without routes for at most maxConnections at a time.
func NewStreams(log logr.Logger, maxConnections int) *Streams {
	s := &Streams{log: log, slots: make(chan struct{}, maxConnections)}
	s.SetRoutes(Routes{})
	return s
}

// SetRoutes replaces the routes; open connections stay.
func (s *Streams) SetRoutes(routes Routes) { s.routes.Store(&routes) }

// Metrics returns the counters.
func (s *Streams) Metrics() map[string]float64 {
	return map[string]float64{
		"gateway_connections_active":         float64(len(s.slots)),
		"gateway_connections_accepted_total": float64(s.accepted.Load()),
		"gateway_connections_refused_total":  float64(s.refused.Load()),
		"gateway_routes":                     float64(s.routes.Load().Len()),
	}
}

// ServeTLS routes connections by the server name of their TLS handshake until ctx is done.
func (s *Streams) ServeTLS(ctx context.Context, listener net.Listener) error {
	return s.serve(ctx, listener, nameFromTLS, refuseTLS)
}

// ServeProxy routes connections by the authority of their PROXY protocol header until ctx is done.
func (s *Streams) ServeProxy(ctx context.Context, listener net.Listener) error {
	return s.serve(ctx, listener, nameFromProxy, refuseTLS)
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

func (s *Streams) serve(ctx context.Context, listener net.Listener, name nameFunc, refuse refuseFunc) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	for {
		if !s.acquire(ctx) {
			return nil
		}
		conn, err := listener.Accept()
		if err != nil {
			<-s.slots
			if ctx.Err() != nil {
				return nil
			}
			// Only a lack of file descriptors or memory comes here; it passes.
			s.log.Error(err, "Cannot accept connections", "address", listener.Addr())
			if !wait(ctx, 100*time.Millisecond) {
				return nil
			}
			continue
		}
		go func() {
			defer func() { <-s.slots }()
			s.handle(ctx, conn.(*net.TCPConn), name, refuse)
		}()
	}
}

func (s *Streams) acquire(ctx context.Context) bool {
	select {
	case s.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Streams) handle(ctx context.Context, client *net.TCPConn, name nameFunc, refuse refuseFunc) {
	defer client.Close()
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer stop()
	backend, read, err := s.open(ctx, client, name)
	if err != nil {
		s.refused.Add(1)
		s.log.V(1).Info("Connection refused", "client", client.RemoteAddr(), "reason", err.Error())
		refuse(client, err)
		return
	}
	s.accepted.Add(1)
	sent, received, err := splice.Join(ctx, splice.PrependBytes(client, read), backend)
	s.log.V(2).Info("Connection ended", "client", client.RemoteAddr(), "sent", sent, "received", received, "error", err)
}

// errUnknownHost says that no route has the host.
var errUnknownHost = errors.New("no TLSRoute for host")

// open reads which host the client wants and connects to its backend.
func (s *Streams) open(ctx context.Context, client *net.TCPConn, name nameFunc) (*net.TCPConn, []byte, error) {
	_ = client.SetReadDeadline(time.Now().Add(helloTimeout))
	host, read, err := name(client)
	if err != nil {
		return nil, nil, err
	}
	_ = client.SetReadDeadline(time.Time{})
	backend, ok := s.routes.Load().Lookup(host)
	if !ok {
		return nil, nil, fmt.Errorf("%w %q", errUnknownHost, host)
	}
	if !backend.Address.IsValid() {
		return nil, nil, fmt.Errorf("host %q: %s", host, backend.Reason)
	}
	dialer := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: splice.KeepAlive}
	conn, err := dialer.DialContext(ctx, "tcp", backend.Address.String())
	if err != nil {
		return nil, nil, fmt.Errorf("host %q: Service %s: %w", host, backend.Service, err)
	}
	return conn.(*net.TCPConn), read, nil
}

// refuseFunc tells a client why it is refused.
type refuseFunc func(*net.TCPConn, error)

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
