package paths

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/trellis-garden/trellis/pkg/tlsfiles"
	"github.com/trellis-garden/trellis/pkg/vpn/connectproxy"
)

// checkTimeout bounds a Check.
const checkTimeout = 5 * time.Second

// Options of a sidecar.
type Options struct {
	// Socket is the file of the socket that it listens on.
	Socket string
	// Proxies are host:port of the proxies of vpn-seed-servers, each of which has that host in its certificate.
	Proxies []string
	// TLS is the client's certificate and the authority of the proxies.
	TLS tlsfiles.Files
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Socket, "socket", "", "file of the socket to listen on")
	flags.StringSliceVar(&o.Proxies, "proxies", nil, "host:port of the proxies of vpn-seed-servers")
	flags.StringVar(&o.TLS.Cert, "tls-cert-file", "",
		"client certificate for the proxies (PEM); read again when it changes")
	flags.StringVar(&o.TLS.Key, "tls-key-file", "", "key of the certificate (PEM)")
	flags.StringVar(&o.TLS.CA, "ca-file", "", "CA of the proxies' certificates (PEM)")
}

// Run is a sidecar until ctx is done.
func Run(ctx context.Context, options Options, log logr.Logger) error {
	if len(options.Proxies) == 0 {
		return errors.New("paths: there is no proxy of a vpn-seed-server")
	}
	var paths []Path
	for _, proxy := range options.Proxies {
		path, err := SeedServer(proxy, options.TLS, log)
		if err != nil {
			return fmt.Errorf("paths: %w", err)
		}
		paths = append(paths, path)
	}
	listener, err := listen(ctx, options.Socket)
	if err != nil {
		return fmt.Errorf("paths: %w", err)
	}
	chooser := New(paths, DefaultTiming, log)
	proxy := &connectproxy.Proxy{Dial: chooser.Dial, Log: log.WithName("proxy")}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return chooser.Run(ctx) })
	group.Go(func() error { return proxy.ServeWithoutTLS(ctx, listener) })
	return group.Wait()
}

// listen opens a socket, in place of one that an earlier process has left.
func listen(ctx context.Context, socket string) (net.Listener, error) {
	if !filepath.IsAbs(socket) {
		return nil, fmt.Errorf("the socket %q is not the absolute name of a file", socket)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("removing the socket of an earlier process: %w", err)
	}
	return (&net.ListenConfig{}).Listen(ctx, "unix", socket)
}

// Check returns nil if a sidecar answers at a socket.
func Check(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://paths/", nil)
	if err != nil {
		return fmt.Errorf("paths: %w", err)
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("paths: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		return fmt.Errorf("paths: what answers at %s is no proxy: %s", socket, response.Status)
	}
	return nil
}
