package paths

import (
	"context"
	"errors"
	"net"
	"testing"
)

// Given a server that was reached, when its name cannot be resolved any more, then it is still reached; and when it is
// gone from that address, the name counts.
func TestTheLastAddressIsTriedFirst(t *testing.T) {
	first, second := listenTCP(t), listenTCP(t)
	noDNS := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no DNS")
	}}
	r := &resolved{direct: net.Dialer{Resolver: noDNS}}
	reaches := func(address string, want net.Listener) {
		t.Helper()
		conn, err := r.dial(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if got := conn.RemoteAddr().String(); got != want.Addr().String() {
			t.Errorf("%s: reached %s, want %s", address, got, want.Addr())
		}
	}
	if _, err := r.dial(t.Context(), "tcp", "vpn-seed-server.invalid:9443"); err == nil {
		t.Error("a name that nobody knows was reached")
	}
	reaches(first.Addr().String(), first)
	reaches("vpn-seed-server.invalid:9443", first)
	_ = first.Close()
	reaches(second.Addr().String(), second)
}

func listenTCP(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}
