// Package demux decides which WireGuard server behind one UDP port a packet is for, as transport.Demultiplexer asks.
// It is a state machine over packets, addresses and times: sockets are the caller's. Messages are read here, as
// wireguard-go keeps its parser to itself: all that is needed of them are lengths and a few fixed fields (packet.go).
//
// A handshake initiation names its server by mac1, a hash under the server's public key. The server's answer tells the
// index by which the client will address it; later packets are told apart by that index. Nothing here is authenticated:
// WireGuard does that at both ends. Therefore a session belongs to one pair of client address and server and never
// moves: a client that appears under a new address gets a new session, and it is the server that decides, by
// authenticating the packet, where its answers go from then on.
package demux

import (
	"hash"
	"hash/maphash"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/blake2s"

	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

// Limits bound what strangers can make a Table hold and compute.
type Limits struct {
	// Sessions is the number of sessions in all.
	Sessions int
	// Unconfirmed is the number of sessions to which no server answered yet; the oldest makes room for the newest.
	Unconfirmed int
	// Idle is the time without packets from the client after which a session ends.
	Idle time.Duration
	// UnconfirmedIdle is the same for sessions to which no server answered.
	UnconfirmedIdle time.Duration
	// PerServer is the number of sessions of one server, UnconfirmedPerServer how many of them it may not have answered
	// yet. The oldest unconfirmed makes room, then the one that is silent for longest. 0 means no other limit than
	// those of all.
	PerServer, UnconfirmedPerServer int
	// NewPerServer is how many sessions of one server begin in a second: each costs a socket. 0 means any number.
	NewPerServer int
	// HashesPerSecond is how many mac1 hashes are computed to find the servers of initiations from unknown addresses.
	HashesPerSecond int
	// HashesPerSource is how many of them are spent on initiations of one source that turn out to be for nobody; 0
	// means any number.
	HashesPerSource int
}

// DefaultLimits fit a gateway of some thousand shoots.
var DefaultLimits = Limits{
	Sessions:             8192,
	Unconfirmed:          1024,
	Idle:                 3 * time.Minute,
	UnconfirmedIdle:      20 * time.Second,
	PerServer:            32,
	UnconfirmedPerServer: 16,
	NewPerServer:         16,
	HashesPerSecond:      300_000,
	HashesPerSource:      30_000,
}

// sessionMemory is what a session takes, with the caller's socket and goroutine, and the kernel's part of it.
const sessionMemory = 12 << 10

// Memory is what all sessions together take at most, in bytes.
func (l Limits) Memory() int { return l.Sessions * sessionMemory }

// redialAfter is how long an initiation may stay unanswered until the next one takes another way to the server.
const redialAfter = time.Second

// indexesPerSession is how many of the server's indexes a session remembers. WireGuard has three live at most; the rest
// is for handshakes whose answers got lost.
const indexesPerSession = 8

// Session is the way between one client address and one WireGuard server.
type Session struct {
	transport.Session

	// fromServer is when the server last sent something, in Unix nanoseconds; 0 means never.
	fromServer atomic.Int64

	// The rest is guarded by the table.
	server       *server
	closed       bool
	lastClient   time.Time
	initiationAt time.Time
	indexes      [indexesPerSession]uint32
	indexCount   int
}

// Confirmed says whether the server ever answered.
func (s *Session) Confirmed() bool { return s.fromServer.Load() != 0 }

// Table holds servers and sessions. Its methods may be called concurrently.
type Table struct {
	limits Limits
	closed func(*Session)

	mu          sync.Mutex
	servers     []*server
	sessions    map[pair]*Session
	byIndex     map[clientIndex]*Session
	owners      map[uint32]*owner
	lastOf      map[netip.AddrPort]*Session
	unconfirmed []*Session // oldest first; may hold sessions that are closed or confirmed by now
	hashes      bucket     // mac1 hashes left
	sources     sources
	pendingEnd  []*Session // sessions that ended while mu is held
	mac         [lengthMAC1]byte
}

type server struct {
	transport.Server
	mac1 hash.Hash
	// gone says that the server was removed.
	gone bool
	// sessions are those of the server, oldest first; beginnings how many more may begin.
	sessions   []*Session
	beginnings bucket
}

type pair struct {
	client netip.AddrPort
	server *server
}

type clientIndex struct {
	client netip.AddrPort
	index  uint32
}

// owner is the server that uses an index, and in how many sessions.
type owner struct {
	server *server
	uses   int
}

// New returns an empty table. closed is called, outside of any lock, for each session that ended.
func New(limits Limits, closed func(*Session)) *Table {
	return &Table{
		limits:   limits,
		closed:   closed,
		sessions: map[pair]*Session{},
		byIndex:  map[clientIndex]*Session{},
		owners:   map[uint32]*owner{},
		lastOf:   map[netip.AddrPort]*Session{},
		sources:  sources{seed: maphash.MakeSeed()},
	}
}

// SetServers replaces the servers. Sessions of servers that are gone or changed end.
func (t *Table) SetServers(servers []transport.Server) {
	t.mu.Lock()
	defer t.unlock()
	kept := map[transport.Server]*server{}
	for _, s := range t.servers {
		kept[s.Server] = s
	}
	t.servers = t.servers[:0:0]
	for _, s := range servers {
		known, ok := kept[s]
		if !ok {
			known = newServer(s)
		}
		delete(kept, s)
		t.servers = append(t.servers, known)
	}
	for _, removed := range kept {
		removed.gone = true
		for len(removed.sessions) > 0 {
			t.end(removed.sessions[0])
		}
	}
}

func newServer(s transport.Server) *server {
	key := mac1Key(s.PublicKey)
	mac, err := blake2s.New128(key[:])
	if err != nil {
		panic(err) // only for keys of a wrong length
	}
	return &server{Server: s, mac1: mac}
}

func (s *server) remove(session *Session) {
	if i := slices.Index(s.sessions, session); i >= 0 {
		s.sessions = slices.Delete(s.sessions, i, i+1)
	}
}

// FromClient finds the session of a packet that came from a client. The session's Link is nil when it is new.
func (t *Table) FromClient(now time.Time, client netip.AddrPort, packet []byte) (*Session, transport.Action) {
	kind := kindOf(packet)
	if kind == 0 {
		return nil, transport.Drop
	}
	t.mu.Lock()
	defer t.unlock()
	if kind == typeInitiation {
		return t.initiation(now, client, packet)
	}
	session := t.byReceiver(now, client, kind, receiverOf(kind, packet))
	if session == nil {
		return nil, transport.Drop
	}
	session.lastClient = now
	return session, transport.Forward
}

// FromServer learns from a packet that the session's server sent, and says whether it is for the client.
func (t *Table) FromServer(now time.Time, session *Session, packet []byte) bool {
	kind := kindOf(packet)
	if kind == 0 {
		return false
	}
	session.fromServer.Store(now.UnixNano())
	if kind == typeInitiation || kind == typeResponse {
		t.mu.Lock()
		defer t.unlock()
		t.learn(session, indexAt(packet, offsetSender))
	}
	return true
}

// Expire ends sessions that were idle for too long.
func (t *Table) Expire(now time.Time) {
	t.mu.Lock()
	defer t.unlock()
	for _, session := range t.sessions {
		limit := t.limits.Idle
		if !session.Confirmed() {
			limit = t.limits.UnconfirmedIdle
		}
		if now.Sub(session.lastClient) >= limit {
			t.end(session)
		}
	}
}

// End ends one session.
func (t *Table) End(session *Session) {
	t.mu.Lock()
	defer t.unlock()
	t.end(session)
}

// Len returns the number of servers and sessions.
func (t *Table) Len() (servers, sessions int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.servers), len(t.sessions)
}

// unlock releases the lock and then reports the sessions that ended under it.
func (t *Table) unlock() {
	ended := t.pendingEnd
	t.pendingEnd = nil
	t.mu.Unlock()
	for _, session := range ended {
		t.closed(session)
	}
}

func (t *Table) initiation(now time.Time, client netip.AddrPort, packet []byte) (*Session, transport.Action) {
	server := t.serverFor(now, client, packet)
	if server == nil {
		return nil, transport.Drop
	}
	session := t.session(now, client, server)
	if session == nil {
		return nil, transport.Drop
	}
	t.lastOf[client] = session
	session.lastClient = now
	if session.fromServer.Load() >= session.initiationAt.UnixNano() || session.initiationAt.IsZero() {
		session.initiationAt = now
		return session, transport.Forward
	}
	if now.Sub(session.initiationAt) < redialAfter {
		return session, transport.Forward
	}
	session.initiationAt = now
	return session, transport.Redial
}

// serverFor finds the server whose mac1 an initiation carries. Those that the client's address and its source talked to
// last are tried for free, the others as long as there are hashes left: junk costs a few hashes at most, however many
// servers there are.
func (t *Table) serverFor(now time.Time, client netip.AddrPort, packet []byte) *server {
	if last, ok := t.lastOf[client]; ok && t.matches(last.server, packet) {
		return last.server
	}
	source := t.sources.of(client)
	for _, server := range source.servers {
		if server != nil && !server.gone && t.matches(server, packet) {
			return server
		}
	}
	server := t.search(now, source, packet)
	if server != nil {
		source.remember(server)
	}
	return server
}

// search tries all servers, if there are enough hashes left for that. An initiation that is for a server is not held
// against its source.
func (t *Table) search(now time.Time, source *source, packet []byte) *server {
	all := len(t.servers)
	if !source.junk.has(now, t.limits.HashesPerSource, all) || !t.hashes.has(now, t.limits.HashesPerSecond, all) {
		return nil
	}
	for tried, server := range t.servers {
		if t.matches(server, packet) {
			t.hashes.take(tried + 1)
			return server
		}
	}
	t.hashes.take(all)
	source.junk.take(all)
	return nil
}

func (t *Table) matches(server *server, packet []byte) bool {
	server.mac1.Reset()
	server.mac1.Write(packet[:offsetInitiationMAC1])
	server.mac1.Sum(t.mac[:0])
	// Not secret: who can see the packet and the public key can compute it.
	return string(t.mac[:]) == string(packet[offsetInitiationMAC1:offsetInitiationMAC1+lengthMAC1])
}

// byReceiver finds the session of a packet by the server's index. A known index from an unknown address is a client
// that roamed.
func (t *Table) byReceiver(now time.Time, client netip.AddrPort, kind byte, index uint32) *Session {
	if session, ok := t.byIndex[clientIndex{client, index}]; ok {
		return session
	}
	owner, ok := t.owners[index]
	if !ok || kind != typeTransport {
		return nil
	}
	session := t.session(now, client, owner.server)
	if session != nil {
		t.learn(session, index)
	}
	return session
}

// session returns the session of a client and a server, and creates it when there is room.
func (t *Table) session(now time.Time, client netip.AddrPort, server *server) *Session {
	key := pair{client, server}
	if session, ok := t.sessions[key]; ok {
		return session
	}
	if !server.beginnings.has(now, t.limits.NewPerServer, 1) {
		return nil
	}
	t.makeRoomAt(server)
	t.makeRoom()
	if len(t.sessions) >= t.limits.Sessions {
		return nil
	}
	server.beginnings.take(1)
	session := &Session{
		Session: transport.Session{Client: client, Server: server.Server}, server: server, lastClient: now,
	}
	session.State = session
	t.sessions[key] = session
	t.unconfirmed = append(t.unconfirmed, session)
	server.sessions = append(server.sessions, session)
	return session
}

// makeRoomAt ends a session of a server that has too many: the oldest unconfirmed, or else the one whose client is
// silent for longest.
func (t *Table) makeRoomAt(server *server) {
	var first, idle *Session
	unconfirmed := 0
	for _, session := range server.sessions {
		if !session.Confirmed() {
			unconfirmed++
			if first == nil {
				first = session
			}
		}
		if idle == nil || session.lastClient.Before(idle.lastClient) {
			idle = session
		}
	}
	full := t.limits.PerServer > 0 && len(server.sessions) >= t.limits.PerServer
	switch {
	case first != nil && (full || t.limits.UnconfirmedPerServer > 0 && unconfirmed >= t.limits.UnconfirmedPerServer):
		t.end(first)
	case full:
		t.end(idle)
	}
}

// makeRoom ends the oldest unconfirmed session when there are too many of them or too many sessions.
func (t *Table) makeRoom() {
	waiting := t.unconfirmed[:0]
	for _, session := range t.unconfirmed {
		if !session.closed && !session.Confirmed() {
			waiting = append(waiting, session)
		}
	}
	clear(t.unconfirmed[len(waiting):])
	t.unconfirmed = waiting
	if len(waiting) > 0 && (len(waiting) >= t.limits.Unconfirmed || len(t.sessions) >= t.limits.Sessions) {
		t.end(waiting[0])
	}
}

// learn binds an index of the session's server to the session.
func (t *Table) learn(session *Session, index uint32) {
	key := clientIndex{session.Client, index}
	if session.closed || t.byIndex[key] == session {
		return
	}
	slot := session.indexCount % indexesPerSession
	if session.indexCount >= indexesPerSession {
		t.forget(session, session.indexes[slot])
	}
	session.indexes[slot] = index
	session.indexCount++
	t.byIndex[key] = session
	if owner, ok := t.owners[index]; ok {
		owner.server = session.server
		owner.uses++
		return
	}
	t.owners[index] = &owner{server: session.server, uses: 1}
}

// forget releases one index of a session.
func (t *Table) forget(session *Session, index uint32) {
	key := clientIndex{session.Client, index}
	if t.byIndex[key] == session {
		delete(t.byIndex, key)
	}
	owner, ok := t.owners[index]
	if !ok {
		return
	}
	if owner.uses--; owner.uses == 0 {
		delete(t.owners, index)
	}
}

func (t *Table) end(session *Session) {
	if session.closed {
		return
	}
	session.closed = true
	delete(t.sessions, pair{session.Client, session.server})
	session.server.remove(session)
	if t.lastOf[session.Client] == session {
		delete(t.lastOf, session.Client)
	}
	for i := range min(session.indexCount, indexesPerSession) {
		t.forget(session, session.indexes[i])
	}
	t.pendingEnd = append(t.pendingEnd, session)
}
