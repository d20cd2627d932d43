// Package sidecar is the way out of a seed for the process beside it in a pod that connects to addresses of users,
// knows how to ask a proxy, but has no egress selector and no certificate for the seed's proxy (package proxy). It
// listens on the loopback interface of the pod only, and decides nothing: that is the seed's proxy's.
package sidecar

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/egress/dialer"
	"github.com/trellis-garden/trellis/pkg/tlsfiles"
	"github.com/trellis-garden/trellis/pkg/vpn/connectproxy"
	"github.com/trellis-garden/trellis/pkg/vpn/splice"
)

const (
	// maxConnections at a time; more wait. It is half of what the seed's proxy gives one kube-apiserver, and each takes
	// some 200 KiB.
	maxConnections = 256
	// checkTimeout bounds a Check.
	checkTimeout = 5 * time.Second
)

// Options of a sidecar.
type Options struct {
	// Listen is an address of the loopback interface.
	Listen string
	// Proxy is host:port of the seed's proxy, which has that host in its certificate.
	Proxy string
	// TLS is the client's certificate and the authority of the proxy.
	TLS tlsfiles.Files
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Listen, "listen", egress.SidecarAddress, "TCP address of the loopback interface")
	flags.StringVar(&o.Proxy, "proxy", "",
		fmt.Sprintf("host:port of the seed's egress proxy, for addresses that users gave (port %d)",
			egress.OutsidePort))
	flags.StringVar(&o.TLS.Cert, "tls-cert-file", "",
		"client certificate for the proxy (PEM); read again when it changes")
	flags.StringVar(&o.TLS.Key, "tls-key-file", "", "key of the certificate (PEM)")
	flags.StringVar(&o.TLS.CA, "ca-file", "", "CA of the proxy's certificate (PEM)")
}

// Run is a sidecar until ctx is done.
func Run(ctx context.Context, options Options, log logr.Logger) error {
	d, err := dialer.New(options.Proxy, options.TLS, log)
	if err != nil {
		return err
	}
	return New(d.DialContext, log).Run(ctx, options.Listen)
}

// Dial connects to host:port through the seed's proxy.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Server is the sidecar.
type Server struct {
	dial  connectproxy.DialFunc
	log   logr.Logger
	slots chan struct{}
}

// New returns a server. The log receives refusals.
func New(dial Dial, log logr.Logger) *Server {
	return &Server{dial: connectproxy.Through(dial), log: log, slots: make(chan struct{}, maxConnections)}
}

// Run listens on an address of the loopback interface and serves until ctx is done.
func (s *Server) Run(ctx context.Context, address string) error {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("egress sidecar: %w", err)
	}
	if !parsed.Addr().IsLoopback() {
		return fmt.Errorf("egress sidecar: %s is no address of the loopback interface: who reaches it leaves the "+
			"seed in the name of its control plane", address)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("egress sidecar: %w", err)
	}
	return s.Serve(ctx, listener)
}

// Serve answers requests until ctx is done, and closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	proxy := &connectproxy.Proxy{Dial: s.connect, Log: s.log}
	return proxy.ServeWithoutTLS(ctx, listener)
}

// connect waits for a slot, then for the seed's proxy.
func (s *Server) connect(ctx context.Context, address string) (splice.Conn, error) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("egress sidecar: there are %d connections already: %w", maxConnections,
			context.Cause(ctx))
	}
	release := sync.OnceFunc(func() { <-s.slots })
	conn, err := s.dial(ctx, address)
	if err != nil {
		release()
		return nil, err
	}
	return &slottedConn{Conn: conn, release: release}, nil
}

// slottedConn gives its slot back when it is closed.
type slottedConn struct {
	splice.Conn
	release func()
}

// Close implements net.Conn.
func (c *slottedConn) Close() error {
	c.release()
	return c.Conn.Close()
}

// Check returns nil if a sidecar answers at an address. It takes none of the sidecar's slots.
func Check(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return fmt.Errorf("egress sidecar: %w", err)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return fmt.Errorf("egress sidecar: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		return fmt.Errorf("egress sidecar: what answers at %s is no proxy: %s", address, response.Status)
	}
	return nil
}
