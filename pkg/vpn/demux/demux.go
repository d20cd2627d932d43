// Package demux decides which WireGuard server behind one UDP port a packet is for. It is a state machine over packets,
// addresses and times: sockets are the caller's.
//
// A handshake initiation names its server by mac1, a hash under the server's public key. The server's answer tells the
// index by which the client will address it; later packets are told apart by that index. Nothing here is authenticated: WireGuard
// does that at both ends. Therefore a session belongs to one pair of client address and server and never moves: a client that
// appears under a new address gets a new session, and it is the server that decides, by authenticating the packet, where its
// answers go from then on.
package demux

import (
	"hash"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/blake2s"
)

// Server is a WireGuard server behind the port.
type Server struct {
	// Name identifies the server; two servers must not share one.
	Name string
	// PublicKey is the server's WireGuard key.
	PublicKey [32]byte
	// Backend is where packets for it go.
	Backend netip.AddrPort
}

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
	// HashesPerSecond is how many mac1 hashes are computed for initiations from unknown addresses.
	HashesPerSecond int
}

// DefaultLimits fit a gateway of some thousand shoots.
var DefaultLimits = Limits{
	Sessions:        8192,
	Unconfirmed:     1024,
	Idle:            3 * time.Minute,
	UnconfirmedIdle: 20 * time.Second,
	HashesPerSecond: 300_000,
}

// redialAfter is how long an initiation may stay unanswered until the next one takes another way to the server.
const redialAfter = time.Second

// indexesPerSession is how many of the server's indexes a session remembers. WireGuard has three live at most; the rest
// is for handshakes whose answers got lost.
const indexesPerSession = 8

// Session is the way between one client address and one server.
type Session struct {
	// Client is the client's address, Server where its packets go.
	Client netip.AddrPort
	Server Server
	// Link is the caller's. It is nil in a new session.
	Link any

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

// Verdict says what to do with a packet from a client.
type Verdict int

const (
	// Drop the packet; there is no session.
	Drop Verdict = iota
	// Forward the packet to the session's server.
	Forward
	// Redial forwards too, but through a new socket: what was sent through the current one stays unanswered, maybe because
	// a connection tracker on the way still sends it to a server that is gone.
	Redial
)

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
	budget      float64    // mac1 hashes left
	refilled    time.Time
	pendingEnd  []*Session // sessions that ended while mu is held
	mac         [lengthMAC1]byte
}

type server struct {
	Server
	mac1 hash.Hash
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
		budget:   float64(limits.HashesPerSecond),
	}
}

// SetServers replaces the servers. Sessions of servers that are gone or changed end.
func (t *Table) SetServers(servers []Server) {
	t.mu.Lock()
	defer t.unlock()
	kept := map[Server]*server{}
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
	for _, session := range t.sessions {
		if _, gone := kept[session.Server]; gone {
			t.end(session)
		}
	}
}

func newServer(s Server) *server {
	key := mac1Key(s.PublicKey)
	mac, err := blake2s.New128(key[:])
	if err != nil {
		panic(err) // only for keys of a wrong length
	}
	return &server{Server: s, mac1: mac}
}

// FromClient finds the session of a packet that came from a client. The session's Link is nil when it is new.
func (t *Table) FromClient(now time.Time, client netip.AddrPort, packet []byte) (*Session, Verdict) {
	kind := kindOf(packet)
	if kind == 0 {
		return nil, Drop
	}
	t.mu.Lock()
	defer t.unlock()
	if kind == typeInitiation {
		return t.initiation(now, client, packet)
	}
	session := t.byReceiver(now, client, kind, receiverOf(kind, packet))
	if session == nil {
		return nil, Drop
	}
	session.lastClient = now
	return session, Forward
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

func (t *Table) initiation(now time.Time, client netip.AddrPort, packet []byte) (*Session, Verdict) {
	server := t.serverFor(now, client, packet)
	if server == nil {
		return nil, Drop
	}
	session := t.session(now, client, server)
	if session == nil {
		return nil, Drop
	}
	t.lastOf[client] = session
	session.lastClient = now
	if session.fromServer.Load() >= session.initiationAt.UnixNano() || session.initiationAt.IsZero() {
		session.initiationAt = now
		return session, Forward
	}
	if now.Sub(session.initiationAt) < redialAfter {
		return session, Forward
	}
	session.initiationAt = now
	return session, Redial
}

// serverFor finds the server whose mac1 an initiation carries. The server that the client talked to last is tried for free.
func (t *Table) serverFor(now time.Time, client netip.AddrPort, packet []byte) *server {
	if last, ok := t.lastOf[client]; ok && t.matches(last.server, packet) {
		return last.server
	}
	t.refill(now)
	for _, server := range t.servers {
		if t.budget < 1 {
			return nil
		}
		t.budget--
		if t.matches(server, packet) {
			return server
		}
	}
	return nil
}

func (t *Table) refill(now time.Time) {
	full := float64(t.limits.HashesPerSecond)
	if !t.refilled.IsZero() {
		t.budget = min(full, t.budget+now.Sub(t.refilled).Seconds()*full)
	}
	t.refilled = now
}

func (t *Table) matches(server *server, packet []byte) bool {
	server.mac1.Reset()
	server.mac1.Write(packet[:offsetInitiationMAC1])
	server.mac1.Sum(t.mac[:0])
	// Not secret: who can see the packet and the public key can compute it.
	return string(t.mac[:]) == string(packet[offsetInitiationMAC1:offsetInitiationMAC1+lengthMAC1])
}

// byReceiver finds the session of a packet by the server's index. A known index from an unknown address is a client that
// roamed.
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
	t.makeRoom()
	if len(t.sessions) >= t.limits.Sessions {
		return nil
	}
	session := &Session{Client: client, Server: server.Server, server: server, lastClient: now}
	t.sessions[key] = session
	t.unconfirmed = append(t.unconfirmed, session)
	return session
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
	if t.lastOf[session.Client] == session {
		delete(t.lastOf, session.Client)
	}
	for i := range min(session.indexCount, indexesPerSession) {
		t.forget(session, session.indexes[i])
	}
	t.pendingEnd = append(t.pendingEnd, session)
}
