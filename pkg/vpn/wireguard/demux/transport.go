package demux

import (
	"net/netip"
	"time"

	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

// Name implements transport.Demultiplexing.
func (Limits) Name() string { return "wireguard" }

// MaxSessions implements transport.Demultiplexing.
func (l Limits) MaxSessions() int { return l.Sessions }

// New implements transport.Demultiplexing.
func (l Limits) New(ended func(*transport.Session)) transport.Demultiplexer {
	return demultiplexer{New(l, func(session *Session) { ended(&session.Session) })}
}

// demultiplexer is a table for who knows nothing of WireGuard.
type demultiplexer struct{ *Table }

func (d demultiplexer) FromClient(
	now time.Time, client netip.AddrPort, packet []byte,
) (*transport.Session, transport.Action) {
	session, action := d.Table.FromClient(now, client, packet)
	if session == nil {
		return nil, action
	}
	return &session.Session, action
}

func (d demultiplexer) FromServer(now time.Time, session *transport.Session, packet []byte) bool {
	return d.Table.FromServer(now, session.State.(*Session), packet)
}

func (d demultiplexer) End(session *transport.Session) { d.Table.End(session.State.(*Session)) }
