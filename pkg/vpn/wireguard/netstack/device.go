package netstack

import (
	"context"
	"os"
	"sync"
	"syscall"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/tun"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// queueLength is how many packets may wait for WireGuard; more are dropped, and TCP slows down.
const queueLength = 1024

// device is the stack's network interface as WireGuard sees it. It hands over packets in batches, which WireGuard
// encrypts in parallel and sends in one system call.
type device struct {
	stack    *stack.Stack
	endpoint *channel.Endpoint
	mtu      int
	events   chan tun.Event

	// closing ends the wait for packets.
	closing context.Context
	cancel  context.CancelFunc
	once    sync.Once
}

var _ tun.Device = (*device)(nil)

func newDevice(s *stack.Stack, mtu int) *device {
	d := &device{
		stack: s, endpoint: channel.New(queueLength, uint32(mtu), ""), mtu: mtu, events: make(chan tun.Event, 1),
	}
	d.closing, d.cancel = context.WithCancel(context.Background())
	d.events <- tun.EventUp
	return d
}

func (d *device) File() *os.File           { return nil }
func (d *device) Name() (string, error)    { return "netstack", nil }
func (d *device) MTU() (int, error)        { return d.mtu, nil }
func (d *device) Events() <-chan tun.Event { return d.events }
func (d *device) BatchSize() int           { return conn.IdealBatchSize }

// Read waits for one packet and takes those that follow at once.
func (d *device) Read(bufs [][]byte, sizes []int, offset int) (int, error) {
	packet := d.endpoint.ReadContext(d.closing)
	n := 0
	for ; packet != nil; packet = d.endpoint.Read() {
		sizes[n] = copyPacket(bufs[n][offset:], packet)
		packet.DecRef()
		if n++; n == len(bufs) {
			break
		}
	}
	if n == 0 {
		return 0, os.ErrClosed
	}
	return n, nil
}

func copyPacket(buf []byte, packet *stack.PacketBuffer) int {
	n := 0
	for _, part := range packet.AsSlices() {
		n += copy(buf[n:], part)
	}
	return n
}

// Write gives decrypted packets to the stack.
func (d *device) Write(bufs [][]byte, offset int) (int, error) {
	for i, buf := range bufs {
		packet := buf[offset:]
		if len(packet) == 0 {
			continue
		}
		protocol := header.IPv4ProtocolNumber
		switch header.IPVersion(packet) {
		case header.IPv4Version:
		case header.IPv6Version:
			protocol = header.IPv6ProtocolNumber
		default:
			return i, syscall.EAFNOSUPPORT
		}
		inbound := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(packet)})
		d.endpoint.InjectInbound(protocol, inbound)
		inbound.DecRef()
	}
	return len(bufs), nil
}

// Close ends the stack with all of its connections.
func (d *device) Close() error {
	d.once.Do(func() {
		d.cancel()
		d.stack.Close()
		d.endpoint.Close()
		close(d.events)
	})
	return nil
}
