// Package connectproxy is an HTTP CONNECT proxy as kube-apiserver's egress selector speaks it: one CONNECT per
// connection, then bytes both ways. What lies behind it is the dialer's business.
package connectproxy

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-garden/trellis/pkg/egress/dialer"
	"github.com/trellis-garden/trellis/pkg/vpn/health"
	"github.com/trellis-garden/trellis/pkg/vpn/splice"
)

// DialFunc opens a connection to host:port of a CONNECT request; Client tells for whom.
type DialFunc func(ctx context.Context, address string) (splice.Conn, error)

// DialError tells the client with which status a request failed. Other errors are answered with 502.
type DialError struct {
	// Status is the HTTP status, 4xx or 5xx.
	Status int
	// Message says which end failed and what to look at.
	Message string
}

func (e *DialError) Error() string { return e.Message }

// Through returns a DialFunc that asks another proxy as a dialer.Dialer does, and answers clients what that answers.
func Through(dial func(ctx context.Context, network, address string) (net.Conn, error)) DialFunc {
	return func(ctx context.Context, address string) (splice.Conn, error) {
		conn, err := dial(ctx, "tcp", address)
		if refused := (*dialer.RefusedError)(nil); errors.As(err, &refused) {
			return nil, &DialError{Status: refused.Status, Message: err.Error()}
		}
		if err != nil {
			return nil, err
		}
		return splice.Of(conn)
	}
}

// Proxy is an http.Handler for CONNECT.
type Proxy struct {
	// Dial opens the connection behind the proxy.
	Dial DialFunc
	// Others answers the requests that are no CONNECT; nil refuses them.
	Others http.Handler
	// Log receives failures.
	Log logr.Logger

	opened, failed, active atomic.Int64
}

// Metrics returns the proxy's counters, whose names begin with prefix.
func (p *Proxy) Metrics(prefix string) []prometheus.Collector {
	return []prometheus.Collector{
		health.Counter(prefix+"_connections_opened_total", "Connections that were made for clients.", p.opened.Load),
		health.Counter(prefix+"_connections_failed_total",
			"Connections that clients asked for and that were refused or failed.", p.failed.Load),
		health.Gauge(prefix+"_connections_active", "Connections that are open.", p.active.Load),
	}
}

// Serve accepts TLS connections from the listener until ctx is done, and ends the open ones then.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener, config *tls.Config) error {
	return p.ServeWithoutTLS(ctx, tls.NewListener(listener, config))
}

// ServeWithoutTLS does the same without TLS, for clients within the pod. Connections of the listener have to be
// splice.Conns.
func (p *Proxy) ServeWithoutTLS(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           p,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		BaseContext:       func(net.Listener) context.Context { return context.WithValue(ctx, lifetimeKey{}, ctx) },
		ErrorLog:          log.New(quiet{p.Log}, "", 0),
		// Only HTTP/1.1: see tlsfiles.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("HTTP CONNECT proxy: %w", err)
	}
	return nil
}

// quiet receives net/http's own messages: mostly probes that connect and leave.
type quiet struct{ log logr.Logger }

func (q quiet) Write(message []byte) (int, error) {
	q.log.V(1).Info(strings.TrimSpace(string(message)))
	return len(message), nil
}

// ServeHTTP answers one request and returns, when it was CONNECT, when its connection ended.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect && p.Others != nil {
		p.Others.ServeHTTP(w, r)
		return
	}
	if r.Method != http.MethodConnect {
		w.Header().Set("Allow", http.MethodConnect)
		http.Error(w, "this proxy knows only the method CONNECT", http.StatusMethodNotAllowed)
		return
	}
	ctx := withClient(r)
	backend, err := p.Dial(ctx, r.URL.Host)
	if err != nil {
		p.failed.Add(1)
		p.Log.Info("Connection refused", "client", Client(ctx), "address", r.URL.Host, "reason", err.Error())
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	defer backend.Close()
	client, err := takeOver(w)
	if err != nil {
		p.failed.Add(1)
		p.Log.Error(err, "Connection from the client ended early", "address", r.URL.Host)
		return
	}
	p.join(lifetime(r), client, backend, r.URL.Host)
}

// clientKey finds the subject of the client's certificate in the context of a request.
type clientKey struct{}

func withClient(r *http.Request) context.Context {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return r.Context()
	}
	return context.WithValue(r.Context(), clientKey{}, r.TLS.VerifiedChains[0][0].Subject)
}

// Client returns the common name of the verified certificate of who asked for a connection, in a DialFunc; empty
// without one.
func Client(ctx context.Context) string {
	name, _ := ctx.Value(clientKey{}).(pkix.Name)
	return name.CommonName
}

// Organization returns the first organization in that certificate; empty without one.
func Organization(ctx context.Context) string {
	name, _ := ctx.Value(clientKey{}).(pkix.Name)
	if len(name.Organization) == 0 {
		return ""
	}
	return name.Organization[0]
}

// lifetimeKey finds the context of Serve in that of a request.
type lifetimeKey struct{}

// lifetime returns the context for a connection that was taken over. That of the request is of no use: net/http cancels
// it when the client ends its side.
func lifetime(r *http.Request) context.Context {
	if ctx, ok := r.Context().Value(lifetimeKey{}).(context.Context); ok {
		return ctx
	}
	return context.WithoutCancel(r.Context())
}

func (p *Proxy) join(ctx context.Context, client, backend splice.Conn, address string) {
	p.opened.Add(1)
	p.active.Add(1)
	defer p.active.Add(-1)
	sent, received, err := splice.Join(ctx, client, backend)
	p.Log.V(2).Info("Connection ended", "address", address, "sent", sent, "received", received, "error", err)
}

func statusOf(err error) int {
	if dialErr := (*DialError)(nil); errors.As(err, &dialErr) {
		return dialErr.Status
	}
	return http.StatusBadGateway
}

// takeOver answers 200 and returns the client's connection, with what it sent ahead of the answer.
func takeOver(w http.ResponseWriter) (splice.Conn, error) {
	raw, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("taking over the connection: %w", err)
	}
	conn, err := splice.Of(raw)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		_ = conn.Close()
		return nil, err
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return splice.Prepend(conn, buffered.Reader), nil
}
