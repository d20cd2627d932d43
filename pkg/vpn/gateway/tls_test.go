package gateway

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/trellis-garden/trellis/pkg/vpn/apiserverproxy"
)

// listenerFor runs serve on a loopback port and returns its address.
func listenerFor(t *testing.T, serve func(context.Context, net.Listener) error) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// apiServer is a TLS server that answers with its name; it returns its port.
func apiServer(t *testing.T, name string) int32 {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, name)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return int32(server.Listener.Addr().(*net.TCPAddr).Port)
}

func closedPort(t *testing.T) int32 {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return int32(listener.Addr().(*net.TCPAddr).Port)
}

func testStreams(t *testing.T) *Streams {
	t.Helper()
	services := []*corev1.Service{
		service("one", "kube-apiserver", "127.0.0.1"), service("two", "kube-apiserver", "127.0.0.1"),
		service("down", "kube-apiserver", "127.0.0.1"),
	}
	streams := NewStreams(logr.Discard(), DefaultLimits)
	streams.SetRoutes(routesOf([]*gatewayv1.TLSRoute{
		tlsRoute("one", 0, apiServer(t, "one"), "api.one.example.org"),
		tlsRoute("two", 0, apiServer(t, "two"), "*.two.example.org"),
		tlsRoute("down", 0, closedPort(t), "down.example.org"),
		tlsRoute("gone", 0, 443, "gone.example.org"),
	}, services...))
	return streams
}

// get asks an API server by way of address, with serverName as SNI; empty sends none.
func get(address, serverName string) (string, error) {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			dialer := tls.Dialer{Config: &tls.Config{ServerName: serverName, InsecureSkipVerify: true}}
			return dialer.DialContext(ctx, "tcp", address)
		},
	}}
	response, err := client.Get("https://shoot/")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func TestStreamsByServerName(t *testing.T) {
	address := listenerFor(t, testStreams(t).ServeTLS)
	cases := map[string]struct{ want, err string }{
		"api.one.example.org":      {want: "one"},
		"API.one.example.org":      {want: "one"},
		"anything.two.example.org": {want: "two"},
		"api.example.org":          {err: "unrecognized name"},
		"":                         {err: "unrecognized name"},
		"down.example.org":         {err: "internal error"},
		"gone.example.org":         {err: "internal error"},
	}
	for name, c := range cases {
		got, err := get(address, name)
		if got != c.want || (c.err != "") != (err != nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: got %q, %v; want %q, error %q", name, got, err, c.want, c.err)
		}
	}
}

func TestStreamsThroughAPIServerProxy(t *testing.T) {
	streams := testStreams(t)
	gateway := listenerFor(t, streams.ServeProxy)
	cases := map[string]struct{ want, err string }{
		"api.one.example.org": {want: "one"},
		"x.two.example.org":   {want: "two"},
		"other.example.org":   {err: "unrecognized name"},
	}
	for authority, c := range cases {
		proxy := apiserverproxy.New(apiserverproxy.Config{Gateway: gateway, Authority: authority, Log: logr.Discard()})
		got, err := get(listenerFor(t, proxy.Serve), "")
		if got != c.want || (c.err != "") != (err != nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: got %q, %v; want %q, error %q", authority, got, err, c.want, c.err)
		}
	}
	if accepted, refused := streams.accepted.Load(), streams.refused.Load(); accepted != 2 || refused != 1 {
		t.Errorf("%d connections were accepted, %d refused", accepted, refused)
	}
}

func TestStreamsRefuseWhatIsNoTLS(t *testing.T) {
	streams := testStreams(t)
	for name, address := range map[string]string{
		"TLS port": listenerFor(t, streams.ServeTLS), "PROXY port": listenerFor(t, streams.ServeProxy),
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		if err != nil || len(answer) != 7 || answer[0] != 21 || answer[6] != 50 {
			t.Errorf("%s: got % x, %v; want the alert decode_error", name, answer, err)
		}
	}
}

// A gateway that has just begun does not know its routes yet: clients wait for them, and get through.
func TestStreamsHoldClientsUntilRoutesAreKnown(t *testing.T) {
	known := *testStreams(t).routes.Load()
	streams := NewStreams(logr.Discard(), DefaultLimits)
	streams.hold = time.Hour
	address := listenerFor(t, streams.ServeTLS)
	type answer struct {
		name string
		err  error
	}
	answers := make(chan answer)
	go func() {
		name, err := get(address, "api.one.example.org")
		answers <- answer{name, err}
	}()
	eventually(t, "a client that waits", func() bool {
		_, handshakes, _ := streams.usage()
		return handshakes == 1
	})
	streams.SetRoutes(Routes{hosts: map[string]Backend{}})
	if refused := streams.refused.Load(); refused != 0 {
		t.Errorf("%d clients were refused before the routes were known", refused)
	}
	streams.SetRoutes(known)
	if got := <-answers; got.name != "one" || got.err != nil {
		t.Errorf("got %q, %v", got.name, got.err)
	}
}

// Routes that do not come hold nobody for ever.
func TestStreamsHoldClientsForAMoment(t *testing.T) {
	streams := NewStreams(logr.Discard(), DefaultLimits)
	if streams.hold >= 10*time.Second {
		t.Errorf("clients are held for %s, longer than those of Kubernetes wait", streams.hold)
	}
	streams.hold = time.Nanosecond
	_, err := get(listenerFor(t, streams.ServeTLS), "api.one.example.org")
	if err == nil || !strings.Contains(err.Error(), "unrecognized name") {
		t.Errorf("got %v", err)
	}
}

// A client that is slow to say what it wants, as on a machine that is overloaded, may take as long as it wants to wait.
func TestStreamsLeaveItToClientsToGiveUp(t *testing.T) {
	streams := NewStreams(logr.Discard(), DefaultLimits)
	if streams.patience <= 10*time.Second {
		t.Errorf("clients have %s for a hello, less than those of Kubernetes give a handshake", streams.patience)
	}
}

// A stream whose client ended its side still gets the whole answer.
func TestStreamsKeepHalfClosedConnections(t *testing.T) {
	backend, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	go func() {
		conn, err := backend.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		request, _ := io.ReadAll(conn)
		fmt.Fprintf(conn, "read %d bytes", len(request))
	}()
	streams := NewStreams(logr.Discard(), Limits{Connections: 1, Handshakes: 1})
	port := int32(backend.Addr().(*net.TCPAddr).Port)
	streams.SetRoutes(routesOf([]*gatewayv1.TLSRoute{tlsRoute("one", 0, port, "api.example.org")},
		service("one", "kube-apiserver", "127.0.0.1")))
	proxy := apiserverproxy.New(apiserverproxy.Config{
		Gateway: listenerFor(t, streams.ServeProxy), Authority: "api.example.org", Log: logr.Discard(),
	})
	conn, err := net.Dial("tcp", listenerFor(t, proxy.Serve))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || string(answer) != "read 1048576 bytes" {
		t.Errorf("got %q, %v", answer, err)
	}
}
