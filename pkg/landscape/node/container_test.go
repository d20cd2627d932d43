package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be what the landscape binary is for a node: its supervisor, first process and
// forwarder.
func TestMain(m *testing.M) {
	if len(os.Args) < 3 {
		os.Exit(m.Run())
	}
	var err error
	switch os.Args[1] {
	case SuperviseCommand:
		err = Supervise(context.Background(), os.Args[3])
	case InitCommand:
		err = Init(os.Args[3])
	case ForwardCommand:
		err = ServeForwards(context.Background(), os.Args[2:])
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// startTestNode starts a node from the root file system of the landscape, or skips the test where it has not been
// built.
func startTestNode(t *testing.T) (Spec, Processes) {
	t.Helper()
	root, err := filepath.Abs("../../../.cache/rootfs/machine")
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 || !exists(filepath.Join(root, initPath)) {
		t.Skip("needs root, and the root file system of machines (make images)")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	spec := Spec{
		Name: fmt.Sprintf("test%d", os.Getpid()), Hostname: "test-node", Dir: t.TempDir(), RootFS: root,
		Address: "172.18.0.2/24", Gateway: "172.18.0.1", Bridge: "node0",
		Files:    []File{{Path: "/etc/motd", Content: "made by a test\n"}},
		Forwards: []Forward{{Listen: address, Target: "172.18.0.2:7777"}},
	}
	processes, err := Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Stop(spec.Dir); err != nil {
			t.Error(err)
		}
		if err := Cleanup(spec.Name); err != nil {
			t.Error(err)
		}
	})
	return spec, processes
}

// startSecondNode starts a node that is connected to a first one; its pods are to be those of 10.1.16.0/20.
func startSecondNode(t *testing.T, first Spec) (Spec, Processes) {
	t.Helper()
	spec := first
	spec.Hostname, spec.Dir, spec.Cgroup, spec.Switch = "test-node-2", t.TempDir(), "node-2", first.Dir
	spec.Address, spec.Forwards = "172.18.0.3/24", nil
	spec.Routes = []Route{{Network: "10.1.0.0/20", Via: "172.18.0.2"}}
	processes, err := Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Stop(spec.Dir); err != nil {
			t.Error(err)
		}
	})
	return spec, processes
}

// Nodes of a landscape reach each other, and what lies behind each other; the host gets no link by that.
func TestNodesReachEachOther(t *testing.T) {
	first, processes := startTestNode(t)
	spec, others := startSecondNode(t, first)
	processes.mustRun(t, "ip", "address", "add", "10.1.0.1/32", "dev", "lo")
	others.mustRun(t, "ip", "address", "add", "10.1.16.1/32", "dev", "lo")
	if name := others.mustRun(t, "hostname"); name != "test-node-2" {
		t.Errorf("the other node is called %s", name)
	}
	server := processes.Command(t.Context(), "perl", "-MIO::Socket::INET", "-e",
		`$s = IO::Socket::INET->new(LocalAddr => "10.1.0.1:7777", Listen => 1, ReuseAddr => 1) or die;
		while ($c = $s->accept) { print $c $c->peerhost; close $c }`)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	const ask = `$c = IO::Socket::INET->new(PeerAddr => "10.1.0.1:7777", Timeout => 5) or die "$!"; print <$c>`
	answered := func(processes Processes) string {
		t.Helper()
		var said string
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			var err error
			if said, err = processes.Run(t.Context(), "perl", "-MIO::Socket::INET", "-e", ask); err == nil {
				return said
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}
	if said := answered(others); said != "172.18.0.3" {
		t.Errorf("the first node sees the other one as %q", said)
	}
	if _, err := net.InterfaceByName(spec.Hostname); err == nil {
		t.Errorf("the port %s is in the network of the host", spec.Hostname)
	}

	// One that was killed is started again under the same name, beside the first one, which goes on.
	if err := others.Supervisor.Kill(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if err := spec.CleanUp(); err != nil {
		t.Fatal(err)
	}
	if !processes.Init.Running() {
		t.Fatal("the first node ended with the other one")
	}
	others, err := Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if said := answered(others); said != "172.18.0.3" {
		t.Errorf("the first node sees the other one as %q after its new start", said)
	}
}

// Without the first node, the others have nobody to talk to, and hold what a new start needs.
func TestNodesEndWithTheFirst(t *testing.T) {
	first, processes := startTestNode(t)
	spec, others := startSecondNode(t, first)
	if err := processes.Supervisor.Kill(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for others.Init.Running() || others.Supervisor.Running() {
		if time.Now().After(deadline) {
			t.Fatal("the other node outlives the first")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if _, running := Running(spec.Dir); running {
		t.Error("it counts as running")
	}
}

func (p Processes) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	output, err := p.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(output)
}

func TestNodeIsAWorldOfItsOwn(t *testing.T) {
	_, processes := startTestNode(t)
	for question, want := range map[string]string{
		"cat /proc/1/comm":                  "systemd",
		"hostname":                          "test-node",
		"cat /etc/motd":                     "made by a test",
		"cat /proc/sys/net/ipv4/ip_forward": "1",
		// What kubelet wants is shown to it; the machine's setting stays.
		"cat /proc/sys/kernel/panic_on_oops": "1",
	} {
		if got := processes.mustRun(t, strings.Fields(question)...); got != want {
			t.Errorf("%s: got %q, want %q", question, got, want)
		}
	}
	for _, setting := range []string{"vm/panic_on_oom", "vm/max_map_count"} {
		if _, err := processes.Run(t.Context(), "sh", "-c",
			"cat /proc/sys/"+setting+" > /proc/sys/"+setting); err == nil {
			t.Errorf("the node may change %s of the machine", setting)
		}
	}
	links := processes.mustRun(t, "ip", "-brief", "link")
	for _, line := range strings.Split(links, "\n") {
		name, _, _ := strings.Cut(strings.Fields(line)[0], "@")
		switch name {
		case "lo", "node0", uplink, uplinkPeer, "tunl0", "sit0", "ip6tnl0", "gre0", "gretap0", "erspan0", "ip_vti0",
			"ip6_vti0", "ip6gre0", "ifb0", "ifb1":
		default:
			t.Errorf("the node has an unexpected link %s", line)
		}
	}
}

func TestHostReachesTheNodeThroughItsListener(t *testing.T) {
	spec, processes := startTestNode(t)
	server := processes.Command(t.Context(), "perl", "-MIO::Socket::INET", "-e",
		`$s = IO::Socket::INET->new(LocalAddr => "172.18.0.2:7777", Listen => 1, ReuseAddr => 1) or die; $c = $s->accept; print $c "hello"; close $c`)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	deadline := time.Now().Add(20 * time.Second)
	for {
		answer := make([]byte, 5)
		connection, err := net.Dial("tcp", spec.Forwards[0].Listen)
		if err == nil {
			_, err = connection.Read(answer)
			connection.Close()
		}
		if err == nil && string(answer) == "hello" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no answer from the node: %q, %v", answer, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestNothingOutlivesAKilledSupervisor(t *testing.T) {
	spec, processes := startTestNode(t)
	if err := processes.Supervisor.Kill(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for processes.Init.Running() {
		if time.Now().After(deadline) {
			t.Fatal("the node outlives its supervisor")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if _, running := Running(spec.Dir); running {
		t.Error("a node without supervisor counts as running")
	}
	if err := Cleanup(spec.Name); err != nil {
		t.Fatal(err)
	}
	all, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range all {
		if exists(landscapeCgroup(h, spec.Name)) {
			t.Errorf("%s is left", landscapeCgroup(h, spec.Name))
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), spec.Dir) {
		t.Error("a mount of the node is visible on the host")
	}
	again, err := Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.mustRun(t, "cat", "/proc/1/comm"); got != "systemd" {
		t.Errorf("the node was started again as %q", got)
	}
}

func TestAFailingStartSaysWhy(t *testing.T) {
	spec, _ := startTestNode(t)
	spec.Name, spec.Dir, spec.Address, spec.Forwards = spec.Name+"b", t.TempDir(), "not an address", nil
	_, err := Start(t.Context(), spec)
	if err == nil || !strings.Contains(err.Error(), `network: address "not an address"`) {
		t.Errorf("got %v", err)
	}
	if err := Cleanup(spec.Name); err != nil {
		t.Error(err)
	}
}
