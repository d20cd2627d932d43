package relay

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/crypto/blake2s"
	"golang.org/x/sys/unix"

	"github.com/trellis-garden/trellis/pkg/vpn/transport"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard/demux"
)

// WireGuard messages of package demux's tests, as far as a relay looks into them.
func initiation(publicKey [32]byte) []byte {
	packet := make([]byte, 148)
	packet[0] = 1
	key := blake2s.Sum256(append([]byte("mac1----"), publicKey[:]...))
	mac, _ := blake2s.New128(key[:])
	mac.Write(packet[:116])
	copy(packet[116:], mac.Sum(nil))
	return packet
}

func response(index uint32) []byte {
	packet := make([]byte, 92)
	packet[0] = 2
	binary.LittleEndian.PutUint32(packet[4:], index)
	return packet
}

func data(index uint32, size int, fill byte) []byte {
	packet := bytes.Repeat([]byte{fill}, size)
	copy(packet, []byte{4, 0, 0, 0})
	binary.LittleEndian.PutUint32(packet[4:], index)
	return packet
}

func listenUDP(t *testing.T, address string) *net.UDPConn {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}

func receive(t *testing.T, conn *net.UDPConn) ([]byte, netip.AddrPort) {
	t.Helper()
	buf := make([]byte, maxDatagram)
	n, from, err := conn.ReadFromUDPAddrPort(buf)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n], from
}

func send(t *testing.T, conn *net.UDPConn, packet []byte, to netip.AddrPort) {
	t.Helper()
	if _, err := conn.WriteToUDPAddrPort(packet, to); err != nil {
		t.Fatal(err)
	}
}

func startRelay(t *testing.T, address string, servers ...transport.Server) *Relay {
	t.Helper()
	r, err := Listen(context.Background(), logr.Discard(), address, demux.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	r.SetServers(servers)
	run(t, r)
	return r
}

// run runs a relay until the test ends.
func run(t *testing.T, r *Relay) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func serverAt(conn *net.UDPConn, key byte) transport.Server {
	return transport.Server{
		Name: string('a' + rune(key)), PublicKey: [32]byte{key}, Backend: conn.LocalAddr().(*net.UDPAddr).AddrPort(),
	}
}

// handshake lets client and backend exchange a handshake through the relay, and returns from where the backend sees the
// client.
func handshake(t *testing.T, client, backend *net.UDPConn, server transport.Server, gateway netip.AddrPort,
	index uint32) netip.AddrPort {
	t.Helper()
	send(t, client, initiation(server.PublicKey), gateway)
	got, from := receive(t, backend)
	if !bytes.Equal(got, initiation(server.PublicKey)) {
		t.Fatalf("the server got % x", got)
	}
	send(t, backend, response(index), from)
	if got, _ := receive(t, client); !bytes.Equal(got, response(index)) {
		t.Fatalf("the client got % x", got)
	}
	return from
}

// A client that sends to one of several addresses of the gateway gets its answers from that address, however the
// gateway listens.
func TestAnswersComeFromTheAddressThatTheClientKnows(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", ":0", "127.0.0.77:0"} {
		t.Run(listen, func(t *testing.T) {
			backend, client := listenUDP(t, "127.0.0.1:0"), listenUDP(t, "127.0.0.1:0")
			server := serverAt(backend, 1)
			r := startRelay(t, listen, server)
			gateway := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.77"), r.Addr().Port())
			from := handshake(t, client, backend, server, gateway, 42)
			send(t, backend, data(7, 100, 'x'), from)
			if _, from := receive(t, client); from != gateway {
				t.Errorf("the answer came from %s, the client knows %s", from, gateway)
			}
		})
	}
}

// Datagrams that arrive coalesced leave as they came, each to its own server.
func TestCoalescedDatagrams(t *testing.T) {
	backendA, backendB, client := listenUDP(t, "127.0.0.1:0"), listenUDP(t, "127.0.0.1:0"), listenUDP(t, "127.0.0.1:0")
	serverA, serverB := serverAt(backendA, 1), serverAt(backendB, 2)
	r := startRelay(t, "127.0.0.1:0", serverA, serverB)
	gateway := r.Addr()
	handshake(t, client, backendA, serverA, gateway, 1)
	handshake(t, client, backendB, serverB, gateway, 2)

	packets := [][]byte{
		data(1, 64, 'a'), data(1, 64, 'b'), data(2, 64, 'c'), data(9, 64, 'd'), data(1, 64, 'e'), data(2, 40, 'f'),
	}
	if _, _, err := client.WriteMsgUDPAddrPort(bytes.Join(packets, nil), appendSegment(nil, 64), gateway); err != nil {
		t.Skipf("no UDP segmentation in this kernel: %v", err)
	}
	for backend, want := range map[*net.UDPConn][][]byte{
		backendA: {packets[0], packets[1], packets[4]},
		backendB: {packets[2], packets[5]},
	} {
		for i := range want {
			if got, _ := receive(t, backend); !bytes.Equal(got, want[i]) {
				t.Errorf("packet %d: got %d bytes of %c, want %d of %c", i, len(got), got[10], len(want[i]),
					want[i][10])
			}
		}
	}
}

func TestCoalescedAnswers(t *testing.T) {
	backend, client := listenUDP(t, "127.0.0.1:0"), listenUDP(t, "127.0.0.1:0")
	server := serverAt(backend, 1)
	r := startRelay(t, ":0", server)
	from := handshake(t, client, backend, server, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), r.Addr().Port()),
		42)

	invalid := bytes.Repeat([]byte{9}, 64)
	packets := [][]byte{data(7, 64, 'a'), data(7, 64, 'b'), invalid, data(7, 64, 'c'), data(7, 33, 'd')}
	if _, _, err := backend.WriteMsgUDPAddrPort(bytes.Join(packets, nil), appendSegment(nil, 64), from); err != nil {
		t.Skipf("no UDP segmentation in this kernel: %v", err)
	}
	for _, i := range []int{0, 1, 3, 4} {
		if got, _ := receive(t, client); !bytes.Equal(got, packets[i]) {
			t.Errorf("packet %d: got %d bytes of %c", i, len(got), got[10])
		}
	}
}

func TestSegmentationFallsBack(t *testing.T) {
	var s segmentation
	var sizes []int
	write := func(b []byte, segment int) error {
		if segment > 0 {
			return unix.EIO
		}
		sizes = append(sizes, len(b))
		return nil
	}
	for range 2 {
		if err := s.send(make([]byte, 250), 100, write); err != nil {
			t.Error(err)
		}
	}
	if len(sizes) != 6 || sizes[0] != 100 || sizes[2] != 50 || !s.refused.Load() {
		t.Errorf("wrote %v", sizes)
	}
	if err := s.send(make([]byte, 50), 100, write); err != nil || sizes[6] != 50 {
		t.Errorf("a single datagram: %v, %v", sizes, err)
	}
}

// A backend that refuses packets for a while, as a Service without endpoints does, does not end the session.
func TestRefusedPacketsDoNotEndTheSession(t *testing.T) {
	backend, client := listenUDP(t, "127.0.0.1:0"), listenUDP(t, "127.0.0.1:0")
	server := serverAt(backend, 1)
	r := startRelay(t, "127.0.0.1:0", server)
	handshake(t, client, backend, server, r.Addr(), 42)
	_ = backend.Close()
	for range 10 {
		send(t, client, data(42, 64, 'x'), r.Addr())
	}
	again := listenUDP(t, server.Backend.String())
	go func() {
		for client.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
			if _, err := client.WriteToUDPAddrPort(data(42, 64, 'y'), r.Addr()); err != nil {
				return
			}
		}
	}()
	for {
		if got, _ := receive(t, again); got[10] == 'y' {
			return
		}
	}
}

// BenchmarkRelay is the way of data from a client to a server, without WireGuard: coalesced as wireguard-go sends it.
func BenchmarkRelay(b *testing.B) {
	sink, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	defer sink.Close()
	r := newRelay(logr.Discard(), demux.DefaultLimits)
	server := serverAt(sink, 1)
	r.SetServers([]transport.Server{server})
	client := netip.MustParseAddrPort("192.0.2.1:1000")
	now := time.Now()
	r.forward(now, client, initiation(server.PublicKey), received{})
	session, _ := r.demultiplexer.FromClient(now, client, initiation(server.PublicKey))
	r.demultiplexer.FromServer(now, session, response(42))

	const size, count = 1392, 40
	batch := bytes.Repeat(data(42, size, 'x'), count)
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	for b.Loop() {
		r.forward(now, client, batch, received{segment: size})
	}
	b.StopTimer()
	r.SetServers(nil)
	r.links.Wait()
}

// letters is a transport whose packets begin with the number of their server. Each client has one session, until the
// servers change.
type letters struct {
	servers  []transport.Server
	sessions map[netip.AddrPort]*transport.Session
	ended    func(*transport.Session)
}

func (l *letters) Name() string     { return "letters" }
func (l *letters) MaxSessions() int { return 1 }

func (l *letters) New(ended func(*transport.Session)) transport.Demultiplexer {
	l.sessions, l.ended = map[netip.AddrPort]*transport.Session{}, ended
	return l
}

func (l *letters) SetServers(servers []transport.Server) {
	l.servers = servers
	for _, session := range l.sessions {
		l.End(session)
	}
}

func (l *letters) End(session *transport.Session) {
	delete(l.sessions, session.Client)
	l.ended(session)
}

func (l *letters) FromServer(time.Time, *transport.Session, []byte) bool { return true }
func (l *letters) Expire(time.Time)                                      {}
func (l *letters) Len() (servers, sessions int)                          { return len(l.servers), len(l.sessions) }

func (l *letters) FromClient(_ time.Time, client netip.AddrPort, packet []byte) (*transport.Session, transport.Action) {
	if int(packet[0]) >= len(l.servers) {
		return nil, transport.Drop
	}
	if l.sessions[client] == nil {
		l.sessions[client] = &transport.Session{Client: client, Server: l.servers[packet[0]]}
	}
	return l.sessions[client], transport.Forward
}

// The relay forwards whatever a transport tells apart.
func TestAnotherTransport(t *testing.T) {
	first, second := listenUDP(t, "127.0.0.1:0"), listenUDP(t, "127.0.0.1:0")
	r, err := Listen(t.Context(), logr.Discard(), "127.0.0.1:0", &letters{})
	if err != nil {
		t.Fatal(err)
	}
	r.SetServers([]transport.Server{serverAt(first, 0), serverAt(second, 1)})
	run(t, r)
	client := listenUDP(t, "127.0.0.1:0")
	send(t, client, []byte{9, 'x'}, r.Addr())
	send(t, client, []byte{1, 'a'}, r.Addr())
	got, from := receive(t, second)
	if !bytes.Equal(got, []byte{1, 'a'}) {
		t.Fatalf("the server got % x", got)
	}
	send(t, second, []byte("b"), from)
	if got, _ := receive(t, client); !bytes.Equal(got, []byte("b")) {
		t.Errorf("the client got % x", got)
	}
}
