package demux

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/crypto/blake2s"

	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

var start = time.Unix(1_700_000_000, 0)

func client(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), uint16(1000+n))
}

func testServer(n int) transport.Server {
	s := transport.Server{
		Name:    fmt.Sprintf("shoot--demo--member%d/vpn-seed-server", n),
		Backend: netip.MustParseAddrPort(fmt.Sprintf("10.2.0.%d:51820", n)),
	}
	s.PublicKey[0] = byte(n)
	return s
}

func initiation(to transport.Server, sender uint32) []byte {
	packet := make([]byte, lengthInitiation)
	packet[0] = typeInitiation
	binary.LittleEndian.PutUint32(packet[offsetSender:], sender)
	key := mac1Key(to.PublicKey)
	mac, _ := blake2s.New128(key[:])
	mac.Write(packet[:offsetInitiationMAC1])
	copy(packet[offsetInitiationMAC1:], mac.Sum(nil))
	return packet
}

func response(sender, receiver uint32) []byte {
	packet := make([]byte, lengthResponse)
	packet[0] = typeResponse
	binary.LittleEndian.PutUint32(packet[offsetSender:], sender)
	binary.LittleEndian.PutUint32(packet[offsetResponseReceiver:], receiver)
	return packet
}

func data(receiver uint32) []byte {
	packet := make([]byte, minTransport)
	packet[0] = typeTransport
	binary.LittleEndian.PutUint32(packet[offsetReceiver:], receiver)
	return packet
}

// fixture is a table with a record of what it closed.
type fixture struct {
	*Table
	closed []*Session
}

func newFixture(limits Limits, servers ...transport.Server) *fixture {
	f := &fixture{}
	f.Table = New(limits, func(s *Session) { f.closed = append(f.closed, s) })
	f.SetServers(servers)
	return f
}

// establish does a handshake of a client with a server that chooses index.
func (f *fixture) establish(t *testing.T, now time.Time, from netip.AddrPort, to transport.Server,
	index uint32) *Session {
	t.Helper()
	session, action := f.FromClient(now, from, initiation(to, 7))
	if action != transport.Forward || session.Server != to || session.Client != from {
		t.Fatalf("initiation to %s: action %d, session %+v", to.Name, action, session)
	}
	if !f.FromServer(now, session, response(index, 7)) {
		t.Fatal("the server's response was not for the client")
	}
	return session
}

func TestHandshakesFindTheirServer(t *testing.T) {
	f := newFixture(DefaultLimits, testServer(1), testServer(2), testServer(3))
	for n := 1; n <= 3; n++ {
		session := f.establish(t, start, client(n), testServer(n), uint32(100+n))
		if got, action := f.FromClient(start, client(n), data(uint32(100+n))); got != session ||
			action != transport.Forward {
			t.Errorf("data of client %d: got %+v, action %d", n, got, action)
		}
	}
}

func TestServersMayChooseTheSameIndex(t *testing.T) {
	f := newFixture(DefaultLimits, testServer(1), testServer(2))
	first := f.establish(t, start, client(1), testServer(1), 42)
	second := f.establish(t, start, client(2), testServer(2), 42)
	for n, want := range map[int]*Session{1: first, 2: second} {
		if got, _ := f.FromClient(start, client(n), data(42)); got != want {
			t.Errorf("data of client %d went to %+v", n, got)
		}
	}
}

func TestDroppedPackets(t *testing.T) {
	f := newFixture(DefaultLimits, testServer(1))
	f.establish(t, start, client(1), testServer(1), 42)
	reserved := data(42)
	reserved[2] = 1
	forged := initiation(testServer(1), 7)
	forged[20]++
	cases := map[string][]byte{
		"empty":                         {},
		"short":                         data(42)[:31],
		"unknown type":                  append([]byte{9}, data(42)[1:]...),
		"reserved bytes":                reserved,
		"initiation of a wrong length":  append(initiation(testServer(1), 7), 0),
		"initiation for an unknown key": initiation(testServer(2), 7),
		"initiation with a wrong mac1":  forged,
		"data for an unknown index":     data(43),
		"response to nobody":            response(1, 43),
	}
	for name, packet := range cases {
		if session, action := f.FromClient(start, client(1), packet); action != transport.Drop || session != nil {
			t.Errorf("%s: got %+v, action %d", name, session, action)
		}
	}
}

func TestServerMayStartTheHandshake(t *testing.T) {
	f := newFixture(DefaultLimits, testServer(1))
	session := f.establish(t, start, client(1), testServer(1), 42)
	if !f.FromServer(start, session, initiation(testServer(9), 43)) {
		t.Fatal("the server's initiation was not for the client")
	}
	if got, action := f.FromClient(start, client(1), response(8, 43)); got != session || action != transport.Forward {
		t.Errorf("the client's response: got %+v, action %d", got, action)
	}
}

func TestRoamingClientGetsItsOwnSession(t *testing.T) {
	f := newFixture(DefaultLimits, testServer(1))
	old := f.establish(t, start, client(1), testServer(1), 42)

	roamed, action := f.FromClient(start, client(2), data(42))
	if action != transport.Forward || roamed == old || roamed.Client != client(2) || roamed.Server != testServer(1) {
		t.Fatalf("got %+v, action %d", roamed, action)
	}
	if roamed.Confirmed() {
		t.Error("a session that no server answered counts as confirmed")
	}
	if again, _ := f.FromClient(start, client(1), data(42)); again != old {
		t.Error("a packet from a new address took the old address its session")
	}
	f.End(old)
	if again, _ := f.FromClient(start, client(3), data(42)); again == nil {
		t.Error("the index was forgotten although the roamed session still uses it")
	}
}

func TestUnansweredInitiationsTakeAnotherWay(t *testing.T) {
	f := newFixture(DefaultLimits, testServer(1))
	send := func(after time.Duration) transport.Action {
		_, action := f.FromClient(start.Add(after), client(1), initiation(testServer(1), 7))
		return action
	}
	if send(0) != transport.Forward || send(redialAfter/2) != transport.Forward {
		t.Error("the first initiations are not forwarded")
	}
	if send(redialAfter) != transport.Redial {
		t.Error("an initiation after an unanswered one does not take another way")
	}
	session, _ := f.FromClient(start.Add(redialAfter), client(1), initiation(testServer(1), 7))
	f.FromServer(start.Add(redialAfter+time.Millisecond), session, response(42, 7))
	if send(time.Minute) != transport.Forward {
		t.Error("an initiation after an answered one takes another way")
	}
}

func TestExpiry(t *testing.T) {
	f := newFixture(DefaultLimits, testServer(1), testServer(2))
	confirmed := f.establish(t, start, client(1), testServer(1), 42)
	unconfirmed, _ := f.FromClient(start, client(2), initiation(testServer(2), 7))

	f.Expire(start.Add(DefaultLimits.UnconfirmedIdle))
	if len(f.closed) != 1 || f.closed[0] != unconfirmed {
		t.Fatalf("closed %v, want only the unconfirmed session", f.closed)
	}
	f.FromClient(start.Add(DefaultLimits.Idle-1), client(1), data(42))
	f.Expire(start.Add(DefaultLimits.Idle))
	if len(f.closed) != 1 {
		t.Fatal("a session with traffic expired")
	}
	f.Expire(start.Add(2 * DefaultLimits.Idle))
	if len(f.closed) != 2 || f.closed[1] != confirmed {
		t.Fatalf("closed %v, want the idle session too", f.closed)
	}
	f.requireEmpty(t)
}

func TestSetServersEndsSessionsOfChangedServers(t *testing.T) {
	f := newFixture(DefaultLimits, testServer(1), testServer(2), testServer(3))
	kept := f.establish(t, start, client(1), testServer(1), 1)
	f.establish(t, start, client(2), testServer(2), 2)
	f.establish(t, start, client(3), testServer(3), 3)
	moved := testServer(3)
	moved.Backend = netip.MustParseAddrPort("10.2.0.33:51820")

	f.SetServers([]transport.Server{moved, testServer(1)})

	if len(f.closed) != 2 {
		t.Errorf("closed %d sessions, want those of the removed and of the moved server", len(f.closed))
	}
	if got, _ := f.FromClient(start, client(1), data(1)); got != kept {
		t.Error("the session of an unchanged server ended")
	}
	if got, _ := f.FromClient(start, client(3), initiation(moved, 7)); got == nil || got.Server != moved {
		t.Errorf("the moved server got %+v", got)
	}
	f.SetServers(nil)
	f.requireEmpty(t)
}

func TestStrangersCannotFillTheTable(t *testing.T) {
	limits := Limits{
		Sessions: 4, Unconfirmed: 2, Idle: time.Minute, UnconfirmedIdle: time.Second, HashesPerSecond: 1000,
	}
	f := newFixture(limits, testServer(1))
	good := f.establish(t, start, client(1), testServer(1), 42)
	for n := 10; n < 200; n++ {
		f.FromClient(start, client(n), initiation(testServer(1), 7))
		f.FromClient(start, client(n), data(42))
	}
	if _, sessions := f.Len(); sessions > limits.Sessions {
		t.Errorf("%d sessions, limit %d", sessions, limits.Sessions)
	}
	if got, _ := f.FromClient(start, client(1), data(42)); got != good {
		t.Error("a confirmed session had to make room")
	}
	if f.establish(t, start, client(2), testServer(1), 43) == nil {
		t.Error("a new client found no room")
	}
}

func TestHashBudget(t *testing.T) {
	limits := DefaultLimits
	limits.HashesPerSecond = 2
	f := newFixture(limits, testServer(1), testServer(2))
	f.establish(t, start, client(1), testServer(1), 1) // one hash
	f.FromClient(start, client(2), initiation(testServer(2), 7))
	if _, sessions := f.Len(); sessions != 1 {
		t.Error("more hashes than the budget allows")
	}
	if _, action := f.FromClient(start, client(1), initiation(testServer(1), 8)); action == transport.Drop {
		t.Error("a known client pays from the budget")
	}
	f.establish(t, start.Add(time.Second), client(2), testServer(2), 2)
}

func TestOldIndexesAreForgotten(t *testing.T) {
	f := newFixture(DefaultLimits, testServer(1))
	var session *Session
	for index := uint32(1); index <= 3*indexesPerSession; index++ {
		session = f.establish(t, start, client(1), testServer(1), index)
	}
	if len(f.byIndex) != indexesPerSession || len(f.owners) != indexesPerSession {
		t.Errorf("%d and %d indexes are remembered, want %d", len(f.byIndex), len(f.owners), indexesPerSession)
	}
	f.End(session)
	f.requireEmpty(t)
}

func (f *fixture) requireEmpty(t *testing.T) {
	t.Helper()
	if len(f.sessions)+len(f.byIndex)+len(f.owners)+len(f.lastOf) != 0 {
		t.Errorf("left over: %d sessions, %d indexes, %d owners, %d clients", len(f.sessions), len(f.byIndex),
			len(f.owners), len(f.lastOf))
	}
}

// Whatever arrives from whomever, the table stays bounded and consistent, and an established session keeps working.
func FuzzTable(f *testing.F) {
	f.Add([]byte{0, 1, 1, 1, 2, 9, 3, 1, 4, 4, 5, 200})
	f.Add([]byte{0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 4, 1, 5, 255, 0, 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		limits := Limits{
			Sessions: 6, Unconfirmed: 3, Idle: time.Hour, UnconfirmedIdle: time.Second, HashesPerSecond: 50,
			PerServer: 4, UnconfirmedPerServer: 2, NewPerServer: 20, HashesPerSource: 20,
		}
		fixture := newFixture(limits, testServer(1), testServer(2))
		sessions := []*Session{fixture.establish(t, start, client(250), testServer(1), 0xffff)}
		now := start
		for len(script) >= 2 {
			op, n := script[0], int(script[1])
			script = script[2:]
			var packet []byte
			switch op % 6 {
			case 0:
				packet = initiation(testServer(1+n%3), uint32(n))
			case 1:
				session := sessions[n%len(sessions)]
				fixture.FromServer(now, session, response(uint32(n), 7))
			case 2:
				packet = data(uint32(n))
			case 3:
				fixture.End(sessions[n%len(sessions)])
			case 4:
				packet = script[:min(n, len(script))]
			case 5:
				now = now.Add(time.Duration(n) * 10 * time.Millisecond)
				fixture.Expire(now)
			}
			if packet == nil {
				continue
			}
			if session, action := fixture.FromClient(now, client(n%5), packet); action != transport.Drop {
				sessions = append(sessions, session)
			}
			fixture.requireConsistent(t, limits)
		}
		for _, session := range sessions {
			fixture.End(session)
		}
		fixture.requireEmpty(t)
	})
}

func (f *fixture) requireConsistent(t *testing.T, limits Limits) {
	t.Helper()
	if len(f.sessions) > limits.Sessions || len(f.byIndex) > limits.Sessions*indexesPerSession ||
		len(f.owners) > limits.Sessions*indexesPerSession {
		t.Fatalf("too large: %d sessions, %d indexes, %d owners", len(f.sessions), len(f.byIndex), len(f.owners))
	}
	for _, server := range f.servers {
		if len(server.sessions) > limits.PerServer {
			t.Fatalf("%s has %d sessions", server.Name, len(server.sessions))
		}
		for _, session := range server.sessions {
			if f.sessions[pair{session.Client, server}] != session {
				t.Fatalf("%s has a session that ended", server.Name)
			}
		}
	}
	for key, session := range f.byIndex {
		if session.closed || f.sessions[pair{key.client, session.server}] != session {
			t.Fatalf("index %d leads to a session that ended", key.index)
		}
		if f.owners[key.index] == nil {
			t.Fatalf("index %d has no owner", key.index)
		}
	}
}

func BenchmarkFromClientTransport(b *testing.B) {
	f := newFixture(DefaultLimits, testServer(1))
	session, _ := f.FromClient(start, client(1), initiation(testServer(1), 7))
	f.FromServer(start, session, response(42, 7))
	packet := data(42)
	b.ReportAllocs()
	for b.Loop() {
		f.FromClient(start, client(1), packet)
	}
}

func BenchmarkInitiationAmongThousandServers(b *testing.B) {
	var servers []transport.Server
	for n := range 1000 {
		s := testServer(1)
		s.Name = fmt.Sprint(n)
		s.PublicKey[1], s.PublicKey[2] = byte(n), byte(n>>8)
		servers = append(servers, s)
	}
	limits := DefaultLimits
	limits.HashesPerSecond = 1 << 40
	f := newFixture(limits, servers...)
	packet := initiation(testServer(99), 7)
	b.ReportAllocs()
	for b.Loop() {
		f.FromClient(start, client(1), packet)
	}
}
