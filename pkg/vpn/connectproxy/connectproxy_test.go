package connectproxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/trellis-garden/trellis/pkg/egress/dialer"
	"github.com/trellis-garden/trellis/pkg/vpn/splice"
)

// start serves a proxy without TLS and returns a connection to it.
func start(t *testing.T, dial DialFunc) (*net.TCPConn, *Proxy) {
	t.Helper()
	proxy := &Proxy{Dial: dial, Log: logr.Discard()}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn.(*net.TCPConn), proxy
}

func request(t *testing.T, conn net.Conn, text string) (int, string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// shout answers what it was sent, once the sender ended its side.
func shout(_ context.Context, address string) (splice.Conn, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		text, _ := io.ReadAll(conn)
		fmt.Fprintf(conn, "%s says %s!", address, text)
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// The client sends data together with its request and ends its side; it still gets the whole answer.
func TestConnect(t *testing.T) {
	conn, proxy := start(t, shout)
	if _, err := io.WriteString(conn, "CONNECT 10.3.0.5:80 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nhello"); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if want := "HTTP/1.1 200 Connection established\r\n\r\n10.3.0.5:80 says hello!"; string(got) != want || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if opened := testutil.ToFloat64(proxy.Metrics("vpn_proxy")[0]); opened != 1 {
		t.Errorf("%v connections were counted", opened)
	}
}

// A client hears what the proxy behind this one says. What that lends has to be half-closable, and is not kept open
// otherwise.
func TestThrough(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	refused := &dialer.RefusedError{Proxy: "the other", Address: "x:80", Status: http.StatusForbidden, Reason: "no"}
	for name, c := range map[string]struct {
		conn   net.Conn
		err    error
		status int
		body   string
	}{
		"a refusal": {nil, fmt.Errorf("asking: %w", refused), http.StatusForbidden, "asking: " + refused.Error() + "\n"},
		"a failure": {nil, errors.New("broken"), http.StatusBadGateway, "broken\n"},
		"a pipe": {
			near, nil, http.StatusBadGateway, "connection of type *net.pipe cannot be half-closed\n",
		},
	} {
		conn, _ := start(t, Through(func(_ context.Context, network, address string) (net.Conn, error) {
			if network != "tcp" || address != "x:80" {
				t.Errorf("%s: dialled %s in %s", name, address, network)
			}
			return c.conn, c.err
		}))
		status, body := request(t, conn, "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n")
		if status != c.status || body != c.body {
			t.Errorf("%s: got %d %q, want %d %q", name, status, body, c.status, c.body)
		}
	}
	if _, err := near.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("what cannot be half-closed stays open: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	cases := map[string]struct {
		request string
		err     error
		status  int
		body    string
	}{
		"not CONNECT": {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", nil, 405, "this proxy knows only the method CONNECT\n"},
		"dial error": {
			"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", &DialError{Status: 504, Message: "tunnel: down"}, 504,
			"tunnel: down\n",
		},
		"other failure": {"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", errors.New("broken"), 502, "broken\n"},
	}
	for name, c := range cases {
		conn, _ := start(t, func(context.Context, string) (splice.Conn, error) { return nil, c.err })
		if status, body := request(t, conn, c.request); status != c.status || body != c.body {
			t.Errorf("%s: got %d %q, want %d %q", name, status, body, c.status, c.body)
		}
	}
}
