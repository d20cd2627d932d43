package relay

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

// maxReadFailures is how many reads in a row may fail: each refused packet fails one.
const maxReadFailures = 100

// link is the socket of a session to its server.
type link struct {
	relay   *Relay
	session *transport.Session
	conn    *net.UDPConn
	segment segmentation
	// local is the local address that the client sends to.
	local atomic.Pointer[localAddress]
	// control is the scratch of sendToServer, which only one goroutine calls.
	control []byte
}

// localAddress is where a client sends to, and the control message that makes answers leave from there.
type localAddress struct {
	info    []byte
	control []byte
}

func (r *Relay) openLink(session *transport.Session, info received) (*link, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(session.Server.Backend))
	if err != nil {
		return nil, err
	}
	tune(conn)
	poller, err := newPoller(conn)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	l := &link{relay: r, session: session, conn: conn}
	l.learnLocal(info)
	r.links.Go(func() { l.readServer(poller) })
	return l, nil
}

func (l *link) close() { _ = l.conn.Close() }

func (l *link) learnLocal(info received) {
	if known := l.local.Load(); known != nil && sameLocal(known.info, info.local) {
		return
	}
	l.local.Store(&localAddress{info: append([]byte(nil), info.local...), control: info.replySource()})
}

// sendToServer sends one or several datagrams. Packets that cannot be sent are lost, as packets are; so are packets for
// no link.
func (l *link) sendToServer(batch []byte, segment int) {
	if l == nil || len(batch) == 0 {
		return
	}
	_ = l.segment.send(batch, segment, func(b []byte, segment int) error {
		l.control = l.control[:0]
		if segment > 0 {
			l.control = appendSegment(l.control, segment)
		}
		_, _, err := l.conn.WriteMsgUDP(b, l.control, nil)
		return err
	})
}

func (l *link) readServer(poller *poller) {
	control, reply := make([]byte, maxControl), make([]byte, 0, maxControl)
	for failures := 0; failures <= maxReadFailures; {
		if poller.wait() != nil {
			return
		}
		err := l.readBatch(control, reply)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			failures = 0
		} else {
			failures++
		}
	}
	l.relay.demultiplexer.End(l.session)
}

func (l *link) readBatch(control, reply []byte) error {
	buf := l.relay.buffers.Get().(*[maxDatagram]byte)
	defer l.relay.buffers.Put(buf)
	n, controlLength, _, _, err := l.conn.ReadMsgUDPAddrPort(buf[:], control)
	if err != nil {
		return err
	}
	l.toClient(time.Now(), buf[:n], parseControl(control[:controlLength]).segment, reply)
	return nil
}

// toClient sends the datagrams of one read to the client, those between two that are not for it in one write.
func (l *link) toClient(now time.Time, batch []byte, segment int, reply []byte) {
	start := 0
	each(batch, segment, func(from, to int) {
		if l.relay.demultiplexer.FromServer(now, l.session, batch[from:to]) {
			l.relay.fromServers.Add(1)
			return
		}
		l.relay.sendToClient(l.session.Client, l.local.Load(), batch[start:from], segment, reply)
		start = to
	})
	l.relay.sendToClient(l.session.Client, l.local.Load(), batch[start:], segment, reply)
}

func (r *Relay) sendToClient(client netip.AddrPort, local *localAddress, batch []byte, segment int, reply []byte) {
	if len(batch) == 0 {
		return
	}
	_ = r.segment.send(batch, segment, func(b []byte, segment int) error {
		reply = append(reply[:0], local.control...)
		if segment > 0 {
			reply = appendSegment(reply, segment)
		}
		_, _, err := r.conn.WriteMsgUDPAddrPort(b, reply, client)
		return err
	})
}

// segmentation writes several datagrams of equal size at once until the kernel refuses.
type segmentation struct {
	refused atomic.Bool
}

// send calls write once with a segment size, or once for each datagram with 0.
func (s *segmentation) send(batch []byte, segment int, write func(b []byte, segment int) error) error {
	if segment <= 0 || len(batch) <= segment {
		return write(batch, 0)
	}
	if !s.refused.Load() {
		err := write(batch, segment)
		if err == nil || !refusesSegmentation(err) {
			return err
		}
		s.refused.Store(true)
	}
	var errs error
	each(batch, segment, func(from, to int) {
		if err := write(batch[from:to], 0); err != nil {
			errs = err
		}
	})
	return errs
}

// refusesSegmentation recognizes devices that cannot compute checksums (EIO) and segments that do not fit the path's
// MTU (EINVAL, EMSGSIZE).
func refusesSegmentation(err error) bool {
	return errors.Is(err, unix.EIO) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EMSGSIZE)
}
