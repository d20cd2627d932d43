// Package dialer leaves a seed through its egress proxy, for processes that connect to addresses that users gave. It
// asks other HTTP CONNECT proxies with mutual TLS the same way.
package dialer

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/trellis-garden/trellis/pkg/tlsfiles"
	"github.com/trellis-garden/trellis/pkg/vpn/splice"
)

const (
	// timeout of a connection, until what lies behind the proxy is reached.
	timeout = 30 * time.Second
	// maxReason is how much is read of why the proxy refuses.
	maxReason = 1 << 10
)

// Dialer asks a proxy by HTTP CONNECT for each connection, and never connects to anything else.
type Dialer struct {
	proxy  Proxy
	host   string
	config func() *tls.Config
}

// Proxy is one that a Dialer asks.
type Proxy struct {
	// Name of the proxy, in errors.
	Name string
	// Address is its host:port; its certificate has that host's name.
	Address string
	// Connect connects to that address, in TCP.
	Connect func(ctx context.Context, network, address string) (net.Conn, error)
}

// New returns a dialer for the seed's egress proxy at host:port, whose certificate has that host's name. The files hold
// the client's certificate and the authority of the proxy. They are read again when they change, but must be there now;
// log receives why they cannot be used.
func New(proxy string, files tlsfiles.Files, log logr.Logger) (*Dialer, error) {
	direct := net.Dialer{KeepAliveConfig: splice.KeepAlive}
	return For(Proxy{Name: "the egress proxy of the seed", Address: proxy, Connect: direct.DialContext}, files, log)
}

// For is New for any proxy.
func For(proxy Proxy, files tlsfiles.Files, log logr.Logger) (*Dialer, error) {
	host, _, err := net.SplitHostPort(proxy.Address)
	if err != nil {
		return nil, fmt.Errorf("the address of %s is not host:port: %w", proxy.Name, err)
	}
	config, err := tlsfiles.ClientConfig(files, log)
	if err != nil {
		return nil, fmt.Errorf("the client's certificate for %s, %s: %w", proxy.Name, proxy.Address, err)
	}
	return &Dialer{proxy: proxy, host: host, config: config}, nil
}

// DialContext connects to host:port by way of the proxy, which resolves the name. What the proxy refuses is a
// RefusedError.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" {
		return nil, fmt.Errorf("%s knows TCP, not %s", d.proxy.Name, network)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	raw, err := d.proxy.Connect(ctx, network, d.proxy.Address)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be reached: %w", d.proxy.Name, err)
	}
	conn, err := d.connect(ctx, raw, address)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

// connect does so by a connection to the proxy, which is the caller's to close when it fails.
func (d *Dialer) connect(ctx context.Context, raw net.Conn, address string) (net.Conn, error) {
	config := d.config().Clone()
	config.ServerName = d.host
	conn := tls.Client(raw, config)
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })
	reader, err := ask(ctx, conn, address)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	refused := (*RefusedError)(nil)
	switch {
	case errors.As(err, &refused):
		refused.Proxy = d.proxy.Name
		return nil, refused
	case err != nil:
		return nil, fmt.Errorf("asking %s for %s: %w", d.proxy.Name, address, errors.Join(context.Cause(ctx), err))
	}
	return splice.Prepend(conn, reader), nil
}

// ask returns a reader of what came after the proxy's consent.
func ask(ctx context.Context, conn *tls.Conn, address string) (*bufio.Reader, error) {
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	request := &http.Request{
		Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{},
	}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return reader, nil
	}
	defer response.Body.Close()
	reason, _ := io.ReadAll(io.LimitReader(response.Body, maxReason))
	return nil, &RefusedError{
		Address: address, Status: response.StatusCode,
		Reason: strings.TrimPrefix(strings.TrimSpace(string(reason)), "egress: "),
	}
}

// RefusedError is what a proxy answered that did not connect.
type RefusedError struct {
	// Proxy is its name.
	Proxy string
	// Address that was asked for.
	Address string
	// Status of HTTP: 403 for an address that may not be reached, 502 for one that does not answer.
	Status int
	// Reason in words.
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s does not connect to %s (%d): %s", e.Proxy, e.Address, e.Status, e.Reason)
}
