package sidecar_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/egress/sidecar"
	"github.com/trellis-garden/trellis/test/seedegress"
)

// start runs a sidecar and returns its address.
func start(t *testing.T, dial sidecar.Dial) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- sidecar.New(dial, logr.Discard()).Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// clientOf asks the proxy at an address, as kube-apiserver does whose kubeconfig names it.
func clientOf(t *testing.T, address string, trusted *http.Client) *http.Client {
	t.Helper()
	roots := trusted.Transport.(*http.Transport).TLSClientConfig.RootCAs
	client := &http.Client{Transport: &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: address}),
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// The seed's proxy is asked with the control plane's certificate, and dials what it allows. TLS is between both ends.
func TestLeavesThroughTheSeedsProxy(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(server.Close)
	proxy := seedegress.Start(t, egress.Rules{}, seedegress.World{
		Resolve: func(host string) []netip.Addr {
			return map[string][]netip.Addr{
				"example.com.":        {netip.MustParseAddr("93.184.216.34")},
				"inside.example.com.": {netip.MustParseAddr("10.1.0.5")},
			}[host]
		},
		Servers: map[string]string{"93.184.216.34:443": server.Listener.Addr().String()},
	})
	client := clientOf(t, start(t, proxy.Dialer(t, "shoot--demo--one").DialContext), server.Client())
	response, err := client.Post("https://example.com/", "text/plain", strings.NewReader("review"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || string(body) != "review" {
		t.Errorf("got %q, %v", body, err)
	}
	for address, status := range map[string]string{
		"https://inside.example.com": "Forbidden", "https://169.254.169.254": "Forbidden", server.URL: "Forbidden",
		"https://nowhere.example.com": "Bad Gateway",
	} {
		if _, err := client.Get(address); err == nil || !strings.HasSuffix(err.Error(), status) {
			t.Errorf("%s: %v, want %s", address, err, status)
		}
	}
	if got := proxy.Dialled(); !slices.Equal(got, []string{"93.184.216.34:443"}) {
		t.Errorf("dialled %v", got)
	}
}

// Nothing is fetched for a client: what is not encrypted to its end would be read here.
func TestOnlyConnect(t *testing.T) {
	address := start(t, func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("dialled") })
	for _, request := range []string{
		"GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, request)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || response.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%q: %v, %v", request, response, err)
		}
		_ = conn.Close()
	}
}

func TestListensOnTheLoopbackInterfaceOnly(t *testing.T) {
	server := sidecar.New(nil, logr.Discard())
	for _, address := range []string{":9445", "0.0.0.0:9445", "[::]:9445", "10.0.0.1:9445", "localhost:9445"} {
		if err := server.Run(t.Context(), address); err == nil {
			t.Errorf("%s is listened on", address)
		}
	}
}

// More connections than fit wait for one to end, and none is lost. Who asks for health does not wait.
func TestConnectionsAreBounded(t *testing.T) {
	const most, all = 256, 300
	var open atomic.Int64
	address := start(t, func(context.Context, string, string) (net.Conn, error) {
		if open.Add(1) > most {
			t.Error("there are too many connections")
		}
		near, far := tcpPipe(t)
		go func() {
			_, _ = io.Copy(io.Discard, far)
			open.Add(-1)
			_ = far.Close()
		}()
		return near, nil
	})
	answered := make(chan net.Conn, all)
	for range all {
		go func() { answered <- connect(t, address) }()
	}
	for range all {
		select {
		case conn := <-answered:
			if open.Load() == most {
				if err := sidecar.Check(t.Context(), address); err != nil {
					t.Error(err)
				}
			}
			_ = conn.Close()
		case <-time.After(30 * time.Second):
			t.Fatal("a connection waits although others ended")
		}
	}
}

// connect asks for an address and returns the connection when there is one.
func connect(t *testing.T, proxy string) net.Conn {
	conn, err := net.Dial("tcp", proxy)
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(conn, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("%v, %v", response, err)
	}
	return conn
}

// tcpPipe returns both ends of a connection.
func tcpPipe(t *testing.T) (near, far net.Conn) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return nil, nil
	}
	defer listener.Close()
	if near, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Error(err)
	}
	if far, err = listener.Accept(); err != nil {
		t.Error(err)
	}
	return near, far
}

func TestCheck(t *testing.T) {
	if err := sidecar.Check(t.Context(), start(t, nil)); err != nil {
		t.Error(err)
	}
	if err := sidecar.Check(t.Context(), "127.0.0.1:1"); err == nil {
		t.Error("nobody answered")
	}
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	if err := sidecar.Check(t.Context(), other.Listener.Addr().String()); err == nil ||
		!strings.Contains(err.Error(), "no proxy") {
		t.Errorf("somebody else: %v", err)
	}
}
