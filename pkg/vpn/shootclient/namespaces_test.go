package shootclient_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/trellis-garden/trellis/pkg/vpn"
	"github.com/trellis-garden/trellis/pkg/vpn/netif"
	"github.com/trellis-garden/trellis/pkg/vpn/relay"
	"github.com/trellis-garden/trellis/pkg/vpn/seedserver"
	"github.com/trellis-garden/trellis/pkg/vpn/shootclient"
	"github.com/trellis-garden/trellis/pkg/vpn/transport"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard/demux"
)

// The test binary plays three roles: the test itself, the seed in a network namespace of its own, and the shoot client
// in the namespace of a pod.
const (
	roleVariable = "VPN_TEST_ROLE"
	roleSeed     = "seed"
	roleClient   = "client"

	// seedIP and podIP are the ends of the link over which the tunnel runs; podEth and nodeIP those of the link to the
	// node.
	seedIP, podIP  = "10.99.0.1/24", "10.99.0.2/24"
	podEth, nodeIP = "10.3.0.2/24", "10.3.0.1/24"

	// overlayMTU is what VXLAN leaves of an Ethernet frame.
	overlayMTU = 1450
)

// content is large enough for full packets, batches and window updates.
var content = bytes.Repeat([]byte("0123456789abcdef"), 1<<18)

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == roleClient {
		if err := runClient(); err != nil {
			fmt.Fprintln(os.Stderr, "client:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func runClient() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config := shootclient.Config{
		Endpoint: os.Getenv("ENDPOINT"), Interface: "wg-seed", MTU: vpn.DefaultMTU,
		Address:     netip.PrefixFrom(vpn.ShootAddress, vpn.TunnelNetwork.Bits()),
		SeedAddress: vpn.SeedAddress, Log: logr.Discard(),
	}
	tunnel := wireguard.Shoot{
		SeedAddress: vpn.SeedAddress, Keepalive: vpn.Keepalive, Mode: wireguard.ModeAuto, Log: logr.Discard(),
	}
	var err error
	if tunnel.PrivateKey, err = wgtypes.ParseKey(os.Getenv("PRIVATE_KEY")); err != nil {
		return err
	}
	if tunnel.PeerPublicKey, err = wgtypes.ParseKey(os.Getenv("PEER_KEY")); err != nil {
		return err
	}
	config.Tunnel = tunnel
	return shootclient.Run(ctx, config)
}

// Given a pod between a seed and a node, when the shoot client runs in it, then the seed reaches the node masqueraded
// as the pod, the node does not reach the seed, a killed client is replaced, and a terminated one leaves nothing
// behind.
func TestClientInNetworkNamespaces(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root for network namespaces")
	}
	if os.Getenv(roleVariable) != roleSeed {
		runInNewNamespace(t)
		return
	}
	w := newWorld(t)
	client := w.startClient(t)
	w.requireTunnel(t)
	w.requireNoWayIntoTunnel(t)

	if err := client.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = client.Wait()
	client = w.startClient(t)
	w.requireTunnel(t)

	if err := client.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := client.Wait(); err != nil {
		t.Errorf("the client ended with %v", err)
	}
	w.requireNothingLeft(t)
}

// runInNewNamespace runs the same test again in a process whose threads are all in a new network namespace.
func runInNewNamespace(t *testing.T) {
	command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	command.Env = append(os.Environ(), roleVariable+"="+roleSeed)
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}

// world is a seed in this process's namespace, a pod and a node in two others.
type world struct {
	seed, pod, node   netns.NsHandle
	seedKey, shootKey wgtypes.Key
	server            *seedserver.Server
	gateway           netip.AddrPort
	seen              chan string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	w := &world{seedKey: newKey(t), shootKey: newKey(t), seen: make(chan string, 100)}
	w.seed = must(netns.Get())(t)
	w.pod, w.node = must(netns.New())(t), must(netns.New())(t)
	w.enter(t, w.seed)
	w.link(t, "seed0", seedIP, w.seed, "pod0", podIP, w.pod, overlayMTU)
	w.link(t, "eth0", podEth, w.pod, "node0", nodeIP, w.node, overlayMTU)
	w.serveOnNode(t)
	w.startSeed(t)
	return w
}

// link connects two namespaces.
func (w *world) link(t *testing.T, nameA, ipA string, a netns.NsHandle, nameB, ipB string, b netns.NsHandle, mtu int) {
	t.Helper()
	w.enter(t, a)
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: nameA, MTU: mtu}, PeerMTU: uint32(mtu), PeerName: nameB,
		PeerNamespace: netlink.NsFd(b),
	}
	check(t, netlink.LinkAdd(veth))
	up(t, nameA, ipA)
	w.enter(t, b)
	up(t, nameB, ipB)
	w.enter(t, w.seed)
}

func up(t *testing.T, name, ip string) {
	t.Helper()
	for _, name := range []string{"lo", name} {
		check(t, netlink.LinkSetUp(must(netlink.LinkByName(name))(t)))
	}
	check(t, netlink.AddrAdd(must(netlink.LinkByName(name))(t), must(netlink.ParseAddr(ip))(t)))
}

func (w *world) enter(t *testing.T, ns netns.NsHandle) {
	t.Helper()
	check(t, netns.Set(ns))
}

// serveOnNode returns what it was sent, once the sender ended its side, and records who asked.
func (w *world) serveOnNode(t *testing.T) {
	t.Helper()
	w.enter(t, w.node)
	defer w.enter(t, w.seed)
	listener := must(net.Listen("tcp4", netip.MustParsePrefix(nodeIP).Addr().String()+":10250"))(t)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			w.seen <- conn.RemoteAddr().(*net.TCPAddr).IP.String()
			sent, _ := io.ReadAll(conn)
			_, _ = conn.Write(sent)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
}

func (w *world) startSeed(t *testing.T) {
	t.Helper()
	const port = 51821
	allowed := []netip.Prefix{netip.PrefixFrom(vpn.ShootAddress, 32), netip.MustParsePrefix(nodeIP).Masked()}
	tunnel := must(wireguard.OpenSeed(wireguard.SeedConfig{
		PrivateKey: w.seedKey, PeerPublicKey: w.shootKey.PublicKey(), ListenPort: port, MTU: vpn.DefaultMTU,
		Addresses: []netip.Addr{vpn.SeedAddress}, AllowedIPs: allowed, Log: logr.Discard(),
	}))(t)
	t.Cleanup(func() { _ = tunnel.Close() })
	w.server = seedserver.New(seedserver.Config{EchoAddress: vpn.SeedAddress, AllowedIPs: allowed, Log: logr.Discard()},
		tunnel)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	echoEnded := make(chan struct{})
	go func() { defer close(echoEnded); _ = w.server.RunEcho(ctx) }()
	t.Cleanup(func() { cancel(); <-echoEnded })

	r := must(relay.Listen(ctx, logr.Discard(), ":0", demux.DefaultLimits))(t)
	r.SetServers([]transport.Server{
		{
			Name: "member1", PublicKey: w.seedKey.PublicKey(),
			Backend: netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", port)),
		},
	})
	w.gateway = netip.AddrPortFrom(netip.MustParsePrefix(seedIP).Addr(), r.Addr().Port())
	go func() { _ = r.Run(ctx) }()
}

// startClient runs the shoot client in the pod's namespace: a child starts in the namespace of the thread that starts
// it.
func (w *world) startClient(t *testing.T) *exec.Cmd {
	t.Helper()
	w.enter(t, w.pod)
	defer w.enter(t, w.seed)
	command := exec.Command(os.Args[0])
	command.Stderr = os.Stderr
	command.Env = append(os.Environ(), roleVariable+"="+roleClient, "ENDPOINT="+w.gateway.String(),
		"PRIVATE_KEY="+w.shootKey.String(), "PEER_KEY="+w.seedKey.PublicKey().String())
	check(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill() })
	return command
}

func (w *world) requireTunnel(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		answer, err := w.askNode()
		if err == nil {
			if !bytes.Equal(answer, content) {
				t.Errorf("the node answered %d bytes, want the %d that it was sent", len(answer), len(content))
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	want := netip.MustParsePrefix(podEth).Addr().String()
	if got := <-w.seen; got != want {
		t.Errorf("the node saw %s, want the pod's address %s", got, want)
	}
}

func (w *world) askNode() ([]byte, error) {
	conn, err := w.server.Dial(context.Background(), netip.MustParsePrefix(nodeIP).Addr().String()+":10250")
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := conn.Write(content); err != nil {
		return nil, err
	}
	if err := conn.CloseWrite(); err != nil {
		return nil, err
	}
	return io.ReadAll(conn)
}

// requireNoWayIntoTunnel asks the seed's echo from the node, which has a route to it through the pod.
func (w *world) requireNoWayIntoTunnel(t *testing.T) {
	t.Helper()
	w.enter(t, w.node)
	defer w.enter(t, w.seed)
	tunnel := netif.IPNet(vpn.TunnelNetwork)
	check(t, netlink.RouteAdd(&netlink.Route{Dst: &tunnel, Gw: netip.MustParsePrefix(podEth).Addr().AsSlice()}))
	conn := must(net.Dial("udp4", netip.AddrPortFrom(vpn.SeedAddress, vpn.EchoPort).String()))(t)
	defer conn.Close()
	must(io.WriteString(conn, "hello"))(t)
	check(t, conn.SetReadDeadline(time.Now().Add(300*time.Millisecond)))
	if n, err := conn.Read(make([]byte, 16)); err == nil {
		t.Errorf("the node reached the seed through the tunnel: %d bytes", n)
	}
}

func (w *world) requireNothingLeft(t *testing.T) {
	t.Helper()
	w.enter(t, w.pod)
	defer w.enter(t, w.seed)
	if _, err := netlink.LinkByName("wg-seed"); err == nil {
		t.Error("the tunnel's interface is still there")
	}
	conn := must(nftables.New())(t)
	for _, table := range must(conn.ListTables())(t) {
		t.Errorf("nftables table %q is still there", table.Name)
	}
}

func newKey(t *testing.T) wgtypes.Key {
	t.Helper()
	return must(wgtypes.GeneratePrivateKey())(t)
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		check(t, err)
		return value
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
