package netstack

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// Ping sends an ICMP echo request to an address behind the tunnel and waits for the answer. The stack gives only echo
// replies of that address, with the identifier that it chose, to the socket of a request.
func (s *Stack) Ping(ctx context.Context, address netip.Addr) error {
	queue := &waiter.Queue{}
	protocol, request := echoRequest(address)
	endpoint, tcpipErr := s.stack.NewEndpoint(protocol, protocolOf(address), queue)
	if tcpipErr != nil {
		return pingError(address, tcpipErr)
	}
	defer endpoint.Close()
	entry, readable := waiter.NewChannelEntry(waiter.ReadableEvents)
	queue.EventRegister(&entry)
	defer queue.EventUnregister(&entry)
	if err := endpoint.Connect(fullAddress(netip.AddrPortFrom(address, 0))); err != nil {
		return pingError(address, err)
	}
	if _, err := endpoint.Write(bytes.NewReader(request), tcpip.WriteOptions{}); err != nil {
		return pingError(address, err)
	}
	select {
	case <-readable:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ping %s: %w", address, context.Cause(ctx))
	}
}

// echoRequest lacks what the stack fills in: the identifier and the checksum.
func echoRequest(address netip.Addr) (tcpip.TransportProtocolNumber, []byte) {
	if address.Is4() {
		request := header.ICMPv4(make([]byte, header.ICMPv4MinimumSize))
		request.SetType(header.ICMPv4Echo)
		return icmp.ProtocolNumber4, request
	}
	request := header.ICMPv6(make([]byte, header.ICMPv6EchoMinimumSize))
	request.SetType(header.ICMPv6EchoRequest)
	return icmp.ProtocolNumber6, request
}

func pingError(address netip.Addr, err tcpip.Error) error {
	return fmt.Errorf("ping %s: %s", address, err.String())
}
