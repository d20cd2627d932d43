package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/trellis-garden/trellis/pkg/vpn/proxyprotocol"
)

// strangers is how many connections a stranger opens, some times more than smallLimits has room for.
const strangers = 300

var smallLimits = Limits{Connections: 64, Handshakes: 64}

// victim is a gateway with two hosts, one.example.org and two.example.org.
func victim(t *testing.T) *Streams {
	t.Helper()
	streams := NewStreams(logr.Discard(), smallLimits)
	streams.SetRoutes(routesOf([]*gatewayv1.TLSRoute{
		tlsRoute("one", 0, apiServer(t, "one"), "one.example.org"),
		tlsRoute("two", 0, apiServer(t, "two"), "two.example.org"),
	}, service("one", "kube-apiserver", "127.0.0.1"), service("two", "kube-apiserver", "127.0.0.1")))
	return streams
}

// dialFrom connects from one of this machine's addresses, sends what is given, and keeps the connection open for the
// test.
func dialFrom(t *testing.T, from, to string, send []byte) net.Conn {
	t.Helper()
	dialer := net.Dialer{
		LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0)), Timeout: 5 * time.Second,
	}
	conn, err := dialer.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, _ = conn.Write(send) // fails when the gateway ended the connection already
	return conn
}

// helloFor is a whole ClientHello.
func helloFor(t *testing.T, host string) []byte {
	t.Helper()
	hello, err := helloBytes(host)
	if err != nil {
		t.Fatal(err)
	}
	return hello
}

// requireService is that an honest client from another address gets its answers, soon.
func requireService(t *testing.T, address, host, want string) {
	t.Helper()
	for range 5 {
		begun := time.Now()
		if got, err := get(address, host); err != nil || got != want {
			t.Fatalf("%s: got %q, %v", host, got, err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("%s took %s", host, took)
		}
	}
}

// eventually waits for what connections that were opened lead to.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come about", what)
		}
	}
}

// Nothing a stranger begins and does not finish keeps others out, at either port.
func TestAttackHalfSentHellos(t *testing.T) {
	hello := helloFor(t, "one.example.org")
	header := proxyprotocol.Header{Authority: "one.example.org"}.Append(nil)
	for name, half := range map[string][]byte{
		"nothing": nil, "hello": hello[:len(hello)/2], "long record": {22, 3, 1, 0x40, 0, 1}, "header": header[:20],
	} {
		t.Run(name, func(t *testing.T) {
			streams := victim(t)
			tlsPort, proxyPort := listenerFor(t, streams.ServeTLS), listenerFor(t, streams.ServeProxy)
			for range strangers {
				dialFrom(t, "127.0.0.2", tlsPort, half)
				dialFrom(t, "127.0.0.2", proxyPort, half)
			}
			requireService(t, tlsPort, "one.example.org", "one")
			if _, handshakes, _ := streams.tls.usage(); handshakes > smallLimits.Handshakes/2+1 {
				t.Errorf("the stranger holds %d of %d places", handshakes, smallLimits.Handshakes)
			}
			if backend := proxied(t, proxyPort, "two.example.org"); backend != "two" {
				t.Errorf("through the PROXY port: %q", backend)
			}
		})
	}
}

// While a gateway does not know its routes, strangers who ask for hosts take no more of it than at other times: who has
// to make room is gone at once.
func TestAttackHellosBeforeRoutesAreKnown(t *testing.T) {
	hello := helloFor(t, "one.example.org")
	streams := NewStreams(logr.Discard(), smallLimits)
	streams.hold = time.Hour
	address := listenerFor(t, streams.ServeTLS)
	for range strangers {
		dialFrom(t, "127.0.0.2", address, hello)
	}
	eventually(t, "the end of those that made room", func() bool {
		_, handshakes, evicted := streams.usage()
		return handshakes <= smallLimits.Handshakes/2+1 && streams.refused.Load() == evicted &&
			evicted+uint64(handshakes) == strangers
	})
}

// proxied asks the API server of a host through the PROXY port.
func proxied(t *testing.T, address, host string) string {
	t.Helper()
	conn := dialFrom(t, "127.0.0.1", address, proxyprotocol.Header{Authority: host}.Append(nil))
	client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	if _, err := fmt.Fprintf(client, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(client)
	if err != nil || len(answer) < 3 {
		t.Fatalf("got %q, %v", answer, err)
	}
	return string(answer[len(answer)-3:])
}

// A hello, or the header before it, that comes byte by byte is ended when the patience is over, not when its last byte
// came.
func TestAttackSlowHello(t *testing.T) {
	streams := victim(t)
	streams.patience = 100 * time.Millisecond
	for name, c := range map[string]struct {
		port string
		send []byte
	}{
		"hello": {listenerFor(t, streams.ServeTLS), helloFor(t, "one.example.org")},
		"header": {
			listenerFor(t, streams.ServeProxy),
			proxyprotocol.Header{Authority: strings.Repeat("one.", 50) + "example.org"}.Append(nil),
		},
	} {
		conn := dialFrom(t, "127.0.0.2", c.port, nil)
		sent := 0
		for _, b := range c.send {
			if _, err := conn.Write([]byte{b}); err != nil {
				break
			}
			sent++
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
		}
		if sent > len(c.send)/2 {
			t.Errorf("%s: %d of %d bytes were taken", name, sent, len(c.send))
		}
	}
}

// Connections that were led to a Service, and are idle then, take at most half of the places, and of one host at most
// half.
func TestAttackIdleConnections(t *testing.T) {
	hello := helloFor(t, "one.example.org")
	for name, from := range map[string]func(n int) string{
		"one source":   func(int) string { return "127.0.0.2" },
		"many sources": func(n int) string { return fmt.Sprintf("127.0.1.%d", n%200+1) },
	} {
		t.Run(name, func(t *testing.T) {
			streams := victim(t)
			address := listenerFor(t, streams.ServeTLS)
			for n := range strangers {
				dialFrom(t, from(n), address, hello)
			}
			eventually(t, "the end of what is too much", func() bool {
				connections, handshakes, _ := streams.tls.usage()
				return connections == smallLimits.Connections/2 && handshakes == 0
			})
			requireService(t, address, "two.example.org", "two")
			if name == "one source" {
				requireBothPorts(t, streams)
			}
		})
	}
}

// requireBothPorts is that what one port is filled with takes nothing of the other.
func requireBothPorts(t *testing.T, streams *Streams) {
	t.Helper()
	if backend := proxied(t, listenerFor(t, streams.ServeProxy), "one.example.org"); backend != "one" {
		t.Errorf("through the PROXY port: %q", backend)
	}
	if connections, _, _ := streams.proxy.usage(); connections > 1 {
		t.Errorf("the PROXY port counts %d connections", connections)
	}
}

// What idle connections and half-sent hellos take in this process is no more than is reckoned with; the kernel's part
// comes on top.
func TestMemoryOfConnections(t *testing.T) {
	const count = 500
	backend, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	port := int32(backend.Addr().(*net.TCPAddr).Port)
	hello := helloFor(t, "one.example.org")
	cases := map[string]struct {
		send []byte
		most int
		// place is which of the places the connections take.
		place func(connections, handshakes int) int
	}{
		"idle connections": {hello, connectionMemory / 2, func(connections, _ int) int { return connections }},
		"half-sent hellos": {
			append([]byte{22, 3, 1, 0x40, 0, 1, 0, 0x3f, 0}, make([]byte, 15<<10)...), handshakeMemory / 4,
			func(_, handshakes int) int { return handshakes },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			streams := NewStreams(logr.Discard(), Limits{Connections: 2 * count, Handshakes: 2 * count})
			streams.patience = time.Minute
			streams.SetRoutes(routesOf([]*gatewayv1.TLSRoute{tlsRoute("one", 0, port, "one.example.org")},
				service("one", "kube-apiserver", "127.0.0.1")))
			address := listenerFor(t, streams.ServeTLS)
			before := memoryInUse()
			for range count {
				dialFrom(t, "127.0.0.2", address, c.send)
			}
			eventually(t, "all connections", func() bool {
				connections, handshakes, _ := streams.tls.usage()
				return c.place(connections, handshakes) == count
			})
			each := (memoryInUse() - before) / count
			if each > c.most {
				t.Errorf("%d bytes for each; reckoned are %d", each, c.most)
			}
		})
	}
}

// memoryInUse is what the heap and the stacks take after collections: the second empties pools, and shrinks what the
// first found large.
func memoryInUse() int {
	for range 3 {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc + stats.StackInuse)
}

// A gateway that ends leaves no connection behind.
func TestConnectionsEndWithTheGateway(t *testing.T) {
	streams := victim(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- streams.ServeTLS(ctx, listener) }()
	dialFrom(t, "127.0.0.1", listener.Addr().String(), nil)
	dialFrom(t, "127.0.0.1", listener.Addr().String(), helloFor(t, "one.example.org"))
	eventually(t, "both connections", func() bool {
		connections, handshakes, _ := streams.tls.usage()
		return connections == 1 && handshakes == 1
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	eventually(t, "the end of both", func() bool {
		connections, handshakes, _ := streams.tls.usage()
		return connections+handshakes == 0
	})
}
