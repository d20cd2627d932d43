package transport

import (
	"net/netip"
	"time"
)

// Server is the seed's end of a tunnel, as the gateway knows it.
type Server struct {
	// Name identifies the server; two servers must not share one.
	Name string
	// PublicKey is the key by which its clients know the server.
	PublicKey [32]byte
	// Backend is where packets for it go.
	Backend netip.AddrPort
}

// Session is the way between one client address and one server.
type Session struct {
	// Client is the client's address, Server where its packets go.
	Client netip.AddrPort
	Server Server
	// Link is the relay's; it is nil in a new session. State is the demultiplexer's.
	Link, State any
}

// Action says what to do with a packet from a client.
type Action int

const (
	// Drop the packet; there is no session.
	Drop Action = iota
	// Forward the packet to the session's server.
	Forward
	// Redial forwards too, but through a new socket: what was sent through the current one stays unanswered, maybe
	// because a connection tracker on the way still sends it to a server that is gone.
	Redial
)

// Demultiplexer decides which of the servers behind one UDP port a packet is for. It does no input or output, so that
// it can be tried with any packets and times. Its methods may be called concurrently.
type Demultiplexer interface {
	// SetServers replaces the servers. Sessions of servers that are gone or changed end.
	SetServers(servers []Server)
	// FromClient finds the session of a packet that came from a client; nil when the packet is to be dropped.
	FromClient(now time.Time, client netip.AddrPort, packet []byte) (*Session, Action)
	// FromServer learns from a packet that the session's server sent, and says whether it is for the client.
	FromServer(now time.Time, session *Session, packet []byte) bool
	// Expire ends sessions that were idle for too long.
	Expire(now time.Time)
	// End ends one session.
	End(session *Session)
	// Len returns the number of servers and sessions.
	Len() (servers, sessions int)
}

// Demultiplexing is what a gateway has to know of a transport.
type Demultiplexing interface {
	// Name of the transport in lower case, as it stands in the names of metrics.
	Name() string
	// New returns a demultiplexer without servers. ended is called, outside of any lock, for each session that ended.
	New(ended func(*Session)) Demultiplexer
	// MaxSessions is how many sessions there are at a time. Each of them has a socket.
	MaxSessions() int
}
