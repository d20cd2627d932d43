package seedserver

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/trellis-garden/trellis/pkg/vpn/connectproxy"
	"github.com/trellis-garden/trellis/pkg/vpn/splice"
	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

// loopback is a tunnel whose other end is this machine.
type loopback struct {
	stats transport.Stats
	err   error
	// silent: nobody answers to Ping.
	silent bool
	// echo has the socket of the echo port once it is open.
	echo chan net.PacketConn
}

func (l loopback) Stats() (transport.Stats, error) { return l.stats, l.err }
func (l loopback) Close() error                    { return nil }

func (l loopback) DialTCP(ctx context.Context, address netip.AddrPort) (splice.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address.String())
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

func (l loopback) ListenUDP(netip.AddrPort) (net.PacketConn, error) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err == nil {
		l.echo <- conn
	}
	return conn, err
}

func (l loopback) Resolver(netip.AddrPort) *net.Resolver { return net.DefaultResolver }

func (l loopback) Ping(ctx context.Context, _ netip.Addr) error {
	if l.silent {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return nil
}

func up() transport.Stats {
	return transport.Stats{LastHandshake: time.Now(), HandshakeExpiry: time.Minute, ReceivedBytes: 7, SentBytes: 8}
}

func serverOf(tunnel loopback) *Server {
	return New(Config{AllowedIPs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Log: logr.Discard()}, tunnel)
}

func TestDialGoesThroughTheTunnel(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	server := serverOf(loopback{stats: up()})
	conn, err := server.Dial(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	_ = listener.Close()

	for address, want := range map[string]struct {
		status int
		text   string
	}{
		address:       {http.StatusBadGateway, "shoot: connecting to " + address},
		"10.0.0.1:80": {http.StatusForbidden, "10.0.0.1 is in none of the shoot's networks (127.0.0.0/8)"},
		"name:80":     {http.StatusBadGateway, `seed: "name" is a name`},
	} {
		_, err := server.Dial(t.Context(), address)
		failed := &connectproxy.DialError{}
		if !errors.As(err, &failed) || failed.Status != want.status || !strings.HasPrefix(failed.Message, want.text) {
			t.Errorf("%s: got %v, want %d %q", address, err, want.status, want.text)
		}
	}
}

func TestEchoAnswersUntilTheEnd(t *testing.T) {
	tunnel := loopback{echo: make(chan net.PacketConn, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- serverOf(tunnel).RunEcho(ctx) }()
	conn, err := net.Dial("udp", (<-tunnel.echo).LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	answer := make([]byte, 16)
	if _, err := conn.Write([]byte("probe")); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(answer); err != nil || !bytes.Equal(answer[:n], []byte("probe")) {
		t.Errorf("got %q, %v", answer[:n], err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTunnelMetrics(t *testing.T) {
	const received = `
# HELP vpn_tunnel_received_bytes_total Encrypted bytes that came through the tunnel.
# TYPE vpn_tunnel_received_bytes_total counter
vpn_tunnel_received_bytes_total 7
`
	collector := tunnelMetrics{loopback{stats: up()}.Stats}
	err := testutil.CollectAndCompare(collector, strings.NewReader(received), "vpn_tunnel_received_bytes_total")
	if err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		tunnel loopback
		want   int
	}{
		"up":                  {loopback{stats: up()}, 3},
		"without a handshake": {loopback{}, 2},
		"cannot tell":         {loopback{err: errors.New("closed")}, 0},
	} {
		if got := testutil.CollectAndCount(tunnelMetrics{c.tunnel.Stats}); got != c.want {
			t.Errorf("%s: %d metrics, want %d", name, got, c.want)
		}
	}
}
