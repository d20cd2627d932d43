package apiserverproxy_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/vishvananda/netlink"

	"github.com/trellis-garden/trellis/pkg/vpn/apiserverproxy"
	"github.com/trellis-garden/trellis/pkg/vpn/proxyprotocol"
)

const inNamespace = "APISERVER_PROXY_TEST_IN_NAMESPACE"

// Given a node, when the proxy runs on it, then a client of the advertised address is announced to the gateway by name,
// and a second run finds the address in place.
func TestAdvertisedAddress(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root for network namespaces")
	}
	if os.Getenv(inNamespace) == "" {
		runInNewNamespace(t)
		return
	}
	startLoopback(t)
	gateway, headers := fakeGateway(t)
	config := apiserverproxy.Config{
		Listen: netip.MustParseAddrPort("240.0.0.1:443"), Gateway: gateway, Authority: "api.member1.demo.example.org",
		Log: logr.Discard(),
	}
	for range 2 {
		stop := run(t, config)
		if got := ask(t, config.Listen); got != "answer" {
			t.Errorf("got %q", got)
		}
		header := <-headers
		if header.Authority != config.Authority || header.Destination != config.Listen || !header.Source.IsValid() {
			t.Errorf("the gateway got the header %+v", header)
		}
		stop()
	}
}

func runInNewNamespace(t *testing.T) {
	command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	command.Env = append(os.Environ(), inNamespace+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}

func startLoopback(t *testing.T) {
	t.Helper()
	link, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		t.Fatal(err)
	}
}

// fakeGateway reads headers and answers.
func fakeGateway(t *testing.T) (address string, headers chan proxyprotocol.Header) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	headers = make(chan proxyprotocol.Header, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if header, err := proxyprotocol.Read(conn); err == nil {
				headers <- header
				_, _ = io.WriteString(conn, "answer")
			}
			_ = conn.Close()
		}
	}()
	return listener.Addr().String(), headers
}

func run(t *testing.T, config apiserverproxy.Config) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- apiserverproxy.Run(ctx, config) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func ask(t *testing.T, address netip.AddrPort) string {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		conn, err := net.Dial("tcp", address.String())
		if err == nil {
			defer conn.Close()
			answer, _ := io.ReadAll(conn)
			return string(answer)
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
