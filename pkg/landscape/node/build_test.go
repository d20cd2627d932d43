package node

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A new cpuset of cgroup v1 is empty, and no process may enter it until it has its parent's.
func TestCgroupsOfV1HaveCPUs(t *testing.T) {
	top := t.TempDir()
	write(t, filepath.Join(top, "cpuset.cpus"), "0-1\n")
	write(t, filepath.Join(top, "cpuset.mems"), "0\n")
	dir := filepath.Join(top, "trellis-local")
	for range 2 {
		if err := createCgroup(hierarchy{path: top}, dir); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, filepath.Join(dir, "cpuset.cpus")) +
		read(t, filepath.Join(dir, "cpuset.mems")); got != "0-1\n0\n" {
		t.Errorf("got %q", got)
	}
	// Other hierarchies have no such files.
	other := t.TempDir()
	if err := createCgroup(hierarchy{path: other}, filepath.Join(other, "trellis-local")); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(filepath.Join(other, "trellis-local")); err != nil || len(entries) > 0 {
		t.Errorf("got %v, %v", entries, err)
	}
}

// In the unified hierarchy children have a controller only when their parent says so.
func TestControllersAreEnabled(t *testing.T) {
	top := t.TempDir()
	write(t, filepath.Join(top, "cgroup.controllers"), "cpu io memory pids rdma\n")
	write(t, filepath.Join(top, "cgroup.subtree_control"), "cpu memory io\n")
	if err := createCgroup(hierarchy{path: top, v2: true}, filepath.Join(top, "trellis-local")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(top, "cgroup.subtree_control")); got != "+pids" {
		t.Errorf("asked for %q", got)
	}
	if err := createCgroup(hierarchy{path: top, v2: true}, filepath.Join(t.TempDir(), "no", "parent")); err == nil {
		t.Error("a parent without controllers is no cgroup")
	}
}

func TestCgroupsAreRemovedFromTheLeaves(t *testing.T) {
	top := filepath.Join(t.TempDir(), "trellis-local")
	if err := os.MkdirAll(filepath.Join(top, "node", "kubepods", "pod1"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := removeTree(top); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(top); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}

func TestProcessesOfACgroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cgroup.procs")
	write(t, path, "12\n4711\n0\n-3\nx\n")
	seen := map[int]bool{7: true}
	if err := addPIDs(seen, path); err != nil {
		t.Fatal(err)
	}
	// 0 is a process of another namespace, which a signal would send to our own group.
	if len(seen) != 3 || !seen[12] || !seen[4711] || !seen[7] {
		t.Errorf("got %v", seen)
	}
	if err := addPIDs(seen, path+".gone"); err != nil {
		t.Errorf("a cgroup that went meanwhile: %v", err)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("12 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21"))
	f.Add([]byte(")"))
	f.Fuzz(func(_ *testing.T, line []byte) { _, _, _ = parseStat(line) })
}

func FuzzParseHierarchies(f *testing.F) {
	f.Add([]byte("30 22 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"))
	f.Add([]byte("30 22 0:1 / /sys/fs/cgroup/cpu rw shared:1 - cgroup cgroup rw,cpu\n - \n"))
	f.Fuzz(func(t *testing.T, mountinfo []byte) {
		found, err := parseHierarchies(bytes.NewReader(mountinfo))
		for _, h := range found {
			if err == nil && !strings.HasPrefix(h.path, cgroupRoot) {
				t.Errorf("%s is no hierarchy of the host", h.path)
			}
		}
	})
}

// Files of the node are written anew at every start, over whatever it did to them, and never through a link of its
// own making.
func TestFilesOfTheNode(t *testing.T) {
	spec := Spec{Dir: t.TempDir(), Links: map[string]string{"/usr/local/bin/kubelet": "kubernetes"}}
	source := filepath.Join(t.TempDir(), "plugin")
	write(t, source, "binary")
	spec.Files = []File{
		{Path: "/etc/hosts", Content: "127.0.0.1 localhost\n"},
		{Path: "/opt/cni/bin/bridge", Source: source, Mode: 0o755},
	}
	outside := filepath.Join(t.TempDir(), "of-the-host")
	write(t, outside, "untouched")
	if err := os.MkdirAll(filepath.Join(spec.root(), "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(spec.root(), "etc/hosts")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := writeFiles(spec); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, filepath.Join(spec.root(), "etc/hosts")) != "127.0.0.1 localhost\n" || read(t, outside) != "untouched" {
		t.Error("a file was written through a link")
	}
	plugin, err := os.Stat(filepath.Join(spec.root(), "opt/cni/bin/bridge"))
	if err != nil || plugin.Mode().Perm() != 0o755 {
		t.Errorf("got %v, %v", plugin, err)
	}
	if target, err := os.Readlink(filepath.Join(spec.root(), "usr/local/bin/kubelet")); err != nil ||
		target != "kubernetes" {
		t.Errorf("got %s, %v", target, err)
	}
	spec.Files = []File{{Path: "/x", Source: source + ".gone"}}
	if err := writeFiles(spec); err == nil || !strings.Contains(err.Error(), source+".gone") {
		t.Errorf("got %v", err)
	}
}

func TestMountPoints(t *testing.T) {
	root := t.TempDir()
	for path, dir := range map[string]bool{"var/lib/etcd": true, "usr/local/bin/kubernetes": false} {
		for range 2 {
			if err := makeMountPoint(filepath.Join(root, path), dir); err != nil {
				t.Fatal(err)
			}
		}
		if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.IsDir() != dir {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}

// cpu → cpu,cpuacct is how programs find cgroup v1; folders are mounted by themselves.
func TestLinksOfHierarchies(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(from, "cpu,cpuacct"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("cpu,cpuacct", filepath.Join(from, "cpu")); err != nil {
		t.Fatal(err)
	}
	if err := copyLinks(from, to); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(to)
	if err != nil || len(entries) != 1 {
		t.Fatalf("got %v, %v", entries, err)
	}
	if target, err := os.Readlink(filepath.Join(to, "cpu")); err != nil || target != "cpu,cpuacct" {
		t.Errorf("got %s, %v", target, err)
	}
}

// A kernel without IPv6, or without the bridge filter, needs no settings for it.
func TestNetworkSettings(t *testing.T) {
	settings := t.TempDir()
	write(t, filepath.Join(settings, "ipv4/ip_forward"), "0")
	if err := setNetwork(settings); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(settings, "ipv4/ip_forward")); got != "1" {
		t.Errorf("got %q", got)
	}
	if exists(filepath.Join(settings, "ipv6")) {
		t.Error("settings were made that the kernel lacks")
	}
}

// The address of a bridge must not depend on its ports, and no two nodes may have the same.
func TestHardwareAddresses(t *testing.T) {
	first, other := hardwareAddress("local-node"), hardwareAddress("local-node-2")
	if len(first) != 6 || first[0] != 0x02 || first.String() == other.String() ||
		first.String() != hardwareAddress("local-node").String() {
		t.Errorf("got %s and %s", first, other)
	}
}

func TestRoutesThatAreNone(t *testing.T) {
	for want, route := range map[string]Route{
		"invalid CIDR address: pods":                          {Network: "pods", Via: "172.18.0.3"},
		`route to 10.1.16.0/20: via "a" is not an IP address`: {Network: "10.1.16.0/20", Via: "a"},
	} {
		if err := addRoutes([]Route{route}, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", route, err, want)
		}
	}
}

// A node that is connected to none is refused, with what to do.
func TestTheSwitchHasToRun(t *testing.T) {
	err := connectToSwitch(Spec{Switch: t.TempDir()}, nil)
	if err == nil || !strings.Contains(err.Error(), "does not run; start that one first") {
		t.Errorf("got %v", err)
	}
	if err := awaitEnd(t.TempDir()); err != nil {
		t.Errorf("waiting for the end of a node that does not run: %v", err)
	}
}

func TestHelpers(t *testing.T) {
	registry := Helper{Name: "registry", Args: []string{"registry"}}
	if got := withForwarder(Spec{Helpers: []Helper{registry}}); len(got) != 1 {
		t.Errorf("got %+v", got)
	}
	// The order of targets is that of the listeners that are handed on.
	spec := Spec{
		Helpers: []Helper{registry}, Forwards: []Forward{
			{Listen: "127.32.1.1:443", Target: "172.18.0.2:443"},
			{Listen: "127.32.1.1:6443", Target: "172.18.0.2:6443"},
		},
	}
	got := withForwarder(spec)
	if len(got) != 2 || !slices.Equal(got[0].Args, []string{ForwardCommand, "172.18.0.2:443", "172.18.0.2:6443"}) ||
		len(spec.Helpers) != 1 {
		t.Errorf("got %+v", got)
	}
}

// A port that is taken is told with what it is for.
func TestListenOnATakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := listen([]Forward{{Listen: taken.Addr().String(), Target: "172.18.0.2:443"}}); err == nil ||
		!strings.Contains(err.Error(), "listening for 172.18.0.2:443") {
		t.Errorf("got %v", err)
	}
}

func TestANodeHasOneSupervisor(t *testing.T) {
	spec := Spec{Name: "local", Dir: t.TempDir()}
	unlock, err := lock(spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(spec); err == nil || !strings.Contains(err.Error(), "node local has a supervisor already") {
		t.Errorf("got %v", err)
	}
	unlock()
	again, err := lock(spec)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// A record of processes that are gone is no running node, even when another process has the number now.
func TestRecordOfProcesses(t *testing.T) {
	spec := Spec{Name: "local", Dir: t.TempDir()}
	if _, running := Running(spec.Dir); running {
		t.Error("a node runs that was never started")
	}
	self, err := LookUp(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := record(spec, self); err != nil {
		t.Fatal(err)
	}
	processes, running := Running(spec.Dir)
	if !running || processes.Init != self || processes.Supervisor != self {
		t.Errorf("got %+v, %v", processes, running)
	}
	for _, other := range []Process{
		{PID: self.PID, Start: self.Start + 1, Boot: self.Boot}, {PID: self.PID, Start: self.Start, Boot: "another"},
		{}, {PID: -1},
	} {
		if other.Running() {
			t.Errorf("%+v is taken for this process", other)
		}
		if err := other.Kill(0); err != nil {
			t.Errorf("ending what is gone: %v", err)
		}
	}
	write(t, spec.pidFile(), "{")
	if _, running := Running(spec.Dir); running {
		t.Error("half a record is taken for a node")
	}
}

// What the supervisor said this time is the reason, not what it said before.
func TestWhatTheSupervisorSaid(t *testing.T) {
	spec := Spec{Dir: t.TempDir()}
	path := filepath.Join(spec.LogDir(), "supervisor.log")
	if got := logSince(spec, 0); got != "see "+path {
		t.Errorf("got %q", got)
	}
	write(t, path, "yesterday: no space\n")
	offset := int64(len("yesterday: no space\n"))
	if got := logSince(spec, offset); got != "see "+path {
		t.Errorf("got %q", got)
	}
	write(t, path, "yesterday: no space\ntoday: no cgroups\n")
	if got := logSince(spec, offset); got != "today: no cgroups" {
		t.Errorf("got %q", got)
	}
	ended := make(chan error, 1)
	ended <- nil
	if _, err := awaitStart(t.Context(), spec, ended, offset); err == nil ||
		!strings.Contains(err.Error(), "the node did not start: today: no cgroups") {
		t.Errorf("got %v", err)
	}
}

// Commands run in all of the node's namespaces, with none of the host's environment.
func TestCommandsInTheNode(t *testing.T) {
	t.Setenv("SECRET_OF_THE_HOST", "x")
	command := Processes{Init: Process{PID: 4711}}.Command(t.Context(), "kubectl", "get", "pods")
	if got := strings.Join(command.Args[1:],
		" "); got != "--target 4711 --mount --uts --ipc --net --pid --cgroup --root --wd -- kubectl get pods" {
		t.Errorf("got %s", got)
	}
	if slices.ContainsFunc(command.Env, func(v string) bool { return strings.HasPrefix(v, "SECRET_OF_THE_HOST") }) {
		t.Errorf("got %v", command.Env)
	}
}

// Specs differ when the node would; otherwise `up` would tell people to start anew for nothing.
func TestSpecsDiffer(t *testing.T) {
	base := func() Spec {
		return Spec{Name: "local", Mounts: []Mount{{Source: "/a", Target: "/b"}}, Links: map[string]string{"/x": "y"}}
	}
	if !base().Equal(base()) {
		t.Error("equal specs differ")
	}
	for name, change := range map[string]func(*Spec){
		"mount":  func(s *Spec) { s.Mounts[0].ReadOnly = true },
		"link":   func(s *Spec) { s.Links["/x"] = "z" },
		"helper": func(s *Spec) { s.Helpers = []Helper{{Name: "registry"}} },
		"cgroup": func(s *Spec) { s.Cgroup = "node-2" },
		"switch": func(s *Spec) { s.Switch = "/first" },
		"route":  func(s *Spec) { s.Routes = []Route{{Network: "10.1.16.0/20", Via: "172.18.0.3"}} },
	} {
		changed := base()
		change(&changed)
		if base().Equal(changed) {
			t.Errorf("another %s is not seen", name)
		}
	}
	if _, err := LoadSpec(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a spec was read that is not there")
	}
}
