// Package netstack is a TCP/IP stack inside the process whose only network interface is a WireGuard device. It needs no
// privilege, and what happens in it does not touch the host's addresses and routes; so the networks of two shoots may
// overlap.
package netstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.zx2c4.com/wireguard/tun"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	nic = 1

	// Nodes of a shoot go away without a word; their connections end within a minute.
	keepaliveIdle     = 15 * time.Second
	keepaliveInterval = 10 * time.Second
	keepaliveCount    = 4

	// Every new connection reserves a window of this size at most; larger ones grow with the traffic.
	defaultBuffer = 256 << 10
	maxBuffer     = 4 << 20
)

// Stack is the network stack.
type Stack struct {
	stack *stack.Stack
}

// New makes a stack with the addresses, and the device that carries its packets. Closing the device closes the stack.
func New(addresses []netip.Addr, mtu int) (*Stack, tun.Device, error) {
	s := stack.New(stack.Options{
		NetworkProtocols: []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{
			tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4, icmp.NewProtocol6,
		},
		HandleLocal: true,
	})
	device := newDevice(s, mtu)
	if err := setUp(s, device, addresses); err != nil {
		return nil, nil, errors.Join(err, device.Close())
	}
	return &Stack{stack: s}, device, nil
}

func setUp(s *stack.Stack, device *device, addresses []netip.Addr) error {
	if err := tuneTCP(s); err != nil {
		return err
	}
	if err := s.CreateNIC(nic, device.endpoint); err != nil {
		return fmt.Errorf("creating interface: %s", err.String())
	}
	for _, address := range addresses {
		protocolAddress := tcpip.ProtocolAddress{
			Protocol:          protocolOf(address),
			AddressWithPrefix: tcpip.AddrFromSlice(address.AsSlice()).WithPrefix(),
		}
		if err := s.AddProtocolAddress(nic, protocolAddress, stack.AddressProperties{}); err != nil {
			return fmt.Errorf("adding address %s: %s", address, err.String())
		}
	}
	s.SetRouteTable([]tcpip.Route{
		{Destination: header.IPv4EmptySubnet, NIC: nic}, {Destination: header.IPv6EmptySubnet, NIC: nic},
	})
	return nil
}

func tuneTCP(s *stack.Stack) error {
	sack, moderate, congestion := tcpip.TCPSACKEnabled(true), tcpip.TCPModerateReceiveBufferOption(true),
		tcpip.CongestionControlOption("cubic")
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: defaultBuffer, Max: maxBuffer}
	send := tcpip.TCPSendBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: defaultBuffer, Max: maxBuffer}
	for _, option := range []tcpip.SettableTransportProtocolOption{&sack, &moderate, &congestion, &receive, &send} {
		if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return fmt.Errorf("setting TCP option %T: %s", option, err.String())
		}
	}
	return nil
}

// DialTCP connects to an address behind the tunnel. Dead peers are found by keepalives.
func (s *Stack) DialTCP(ctx context.Context, address netip.AddrPort) (*gonet.TCPConn, error) {
	queue := &waiter.Queue{}
	endpoint, tcpipErr := s.stack.NewEndpoint(tcp.ProtocolNumber, protocolOf(address.Addr()), queue)
	if tcpipErr != nil {
		return nil, opError("dial", address, tcpipErr)
	}
	if err := connect(ctx, endpoint, queue, address); err != nil {
		endpoint.Close()
		return nil, err
	}
	return gonet.NewTCPConn(queue, endpoint), nil
}

func connect(ctx context.Context, endpoint tcpip.Endpoint, queue *waiter.Queue, address netip.AddrPort) error {
	if err := keepAlive(endpoint); err != nil {
		return opError("dial", address, err)
	}
	entry, connected := waiter.NewChannelEntry(waiter.WritableEvents)
	queue.EventRegister(&entry)
	defer queue.EventUnregister(&entry)
	tcpipErr := endpoint.Connect(fullAddress(address))
	if _, started := tcpipErr.(*tcpip.ErrConnectStarted); started {
		select {
		case <-ctx.Done():
			return &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(address), Err: ctx.Err()}
		case <-connected:
			tcpipErr = endpoint.LastError()
		}
	}
	if tcpipErr != nil {
		return opError("dial", address, tcpipErr)
	}
	return nil
}

func keepAlive(endpoint tcpip.Endpoint) tcpip.Error {
	endpoint.SocketOptions().SetKeepAlive(true)
	idle, interval := tcpip.KeepaliveIdleOption(keepaliveIdle), tcpip.KeepaliveIntervalOption(keepaliveInterval)
	for _, option := range []tcpip.SettableSocketOption{&idle, &interval} {
		if err := endpoint.SetSockOpt(option); err != nil {
			return err
		}
	}
	return endpoint.SetSockOptInt(tcpip.KeepaliveCountOption, keepaliveCount)
}

// DialUDP opens a UDP socket to an address behind the tunnel.
func (s *Stack) DialUDP(address netip.AddrPort) (*gonet.UDPConn, error) {
	remote := fullAddress(address)
	return gonet.DialUDP(s.stack, nil, &remote, protocolOf(address.Addr()))
}

// ListenUDP opens a UDP socket on an own address.
func (s *Stack) ListenUDP(address netip.AddrPort) (*gonet.UDPConn, error) {
	local := fullAddress(address)
	return gonet.DialUDP(s.stack, &local, nil, protocolOf(address.Addr()))
}

// ListenTCP listens on an own address.
func (s *Stack) ListenTCP(address netip.AddrPort) (*gonet.TCPListener, error) {
	return gonet.ListenTCP(s.stack, fullAddress(address), protocolOf(address.Addr()))
}

// Resolver asks the DNS server at an address behind the tunnel.
func (s *Stack) Resolver(server netip.AddrPort) *net.Resolver {
	return &net.Resolver{PreferGo: true, StrictErrors: true,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			if network == "udp" {
				return s.DialUDP(server)
			}
			return s.DialTCP(ctx, server)
		}}
}

func fullAddress(address netip.AddrPort) tcpip.FullAddress {
	return tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFromSlice(address.Addr().AsSlice()), Port: address.Port()}
}

func protocolOf(address netip.Addr) tcpip.NetworkProtocolNumber {
	if address.Is4() {
		return ipv4.ProtocolNumber
	}
	return ipv6.ProtocolNumber
}

// opError wraps a failure of the stack; a connection that nobody answered counts as a time-out, as it does in package
// net.
func opError(op string, address netip.AddrPort, err tcpip.Error) error {
	wrapped := &net.OpError{Op: op, Net: "tcp", Addr: net.TCPAddrFromAddrPort(address), Err: errors.New(err.String())}
	if _, timeout := err.(*tcpip.ErrTimeout); timeout {
		wrapped.Err = context.DeadlineExceeded
	}
	return wrapped
}
