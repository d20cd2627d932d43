package relay

import (
	"bytes"
	"encoding/binary"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// maxDatagram is also the most that the kernel coalesces into one read (UDP_GRO).
	maxDatagram = 1<<16 - 1
	// maxControl holds the control messages of one datagram: packet info and segment size.
	maxControl = 128
	// socketBuffer is asked for; the system may grant less.
	socketBuffer = 4 << 20
)

// listenControl asks for the local address of each datagram, so that answers leave from the address that the client
// knows, and for coalesced reads.
func listenControl(network, _ string, raw syscall.RawConn) error {
	var err error
	controlErr := raw.Control(func(fd uintptr) {
		if network == "udp6" {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		} else {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		}
	})
	if controlErr != nil {
		return controlErr
	}
	return err
}

// tune enlarges a socket's buffers and turns on coalesced reads where the kernel can. Neither is needed for
// correctness.
func tune(conn *net.UDPConn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1)
		for _, option := range []int{unix.SO_RCVBUF, unix.SO_SNDBUF, unix.SO_RCVBUFFORCE, unix.SO_SNDBUFFORCE} {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, socketBuffer)
		}
	})
}

// received is what the control messages of a read say.
type received struct {
	// segment is the size of each coalesced datagram but the last; 0 when there is only one.
	segment int
	// local is the payload of the packet info message; its length tells IPv4 from IPv6.
	local []byte
}

// parseControl does not allocate; local points into control.
func parseControl(control []byte) received {
	var r received
	for len(control) >= unix.SizeofCmsghdr {
		header, data, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			return r
		}
		switch {
		case header.Level == unix.SOL_UDP && header.Type == unix.UDP_GRO && len(data) >= 2:
			r.segment = int(binary.NativeEndian.Uint16(data))
		case header.Level == unix.IPPROTO_IP && header.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			r.local = data[:unix.SizeofInet4Pktinfo]
		case header.Level == unix.IPPROTO_IPV6 && header.Type == unix.IPV6_PKTINFO &&
			len(data) >= unix.SizeofInet6Pktinfo:
			r.local = data[:unix.SizeofInet6Pktinfo]
		}
		control = rest
	}
	return r
}

// replySource makes the control message that sends an answer from the address that a datagram was sent to. The
// interface is left to the routing table.
func (r received) replySource() []byte {
	switch len(r.local) {
	case unix.SizeofInet4Pktinfo:
		info := unix.Inet4Pktinfo{}
		copy(info.Spec_dst[:], r.local[8:12])
		return unix.PktInfo4(&info)
	case unix.SizeofInet6Pktinfo:
		info := unix.Inet6Pktinfo{}
		copy(info.Addr[:], r.local[:16])
		return unix.PktInfo6(&info)
	}
	return nil
}

// sameLocal says whether two payloads of packet info name the same local address.
func sameLocal(a, b []byte) bool { return bytes.Equal(a, b) }

// appendSegment appends the control message that makes the kernel cut one write into datagrams.
func appendSegment(control []byte, size int) []byte {
	start := len(control)
	control = append(control, make([]byte, unix.CmsgSpace(2))...)
	header := (*unix.Cmsghdr)(unsafe.Pointer(&control[start]))
	header.Level = unix.SOL_UDP
	header.Type = unix.UDP_SEGMENT
	header.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(control[start+unix.CmsgLen(0):], uint16(size))
	return control
}

// poller waits until a socket can be read without holding a buffer meanwhile.
type poller struct {
	raw syscall.RawConn
	fds [1]unix.PollFd
}

func newPoller(conn *net.UDPConn) (*poller, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &poller{raw: raw}, nil
}

func (p *poller) wait() error { return p.raw.Read(p.readable) }

func (p *poller) readable(fd uintptr) bool {
	p.fds[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	n, err := unix.Poll(p.fds[:], 0)
	return n > 0 || err != nil && err != unix.EINTR
}
