package landscape

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trellis-garden/trellis/pkg/images"
	"github.com/trellis-garden/trellis/pkg/imagevector"
	"github.com/trellis-garden/trellis/pkg/landscape/node"
)

// builtLandscape is one of a clone in which everything is built, as far as files go.
func builtLandscape(t *testing.T) *Landscape {
	t.Helper()
	// What imageVector sets goes back when the test ends.
	t.Setenv(imagevector.OverwriteEnv, "")
	l, err := New("other", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.nodeSpec(state{}, firstNode); err == nil ||
		!strings.Contains(err.Error(), "the images are not built, `make images` builds them") {
		t.Errorf("got %v", err)
	}
	for path, content := range map[string]string{
		filepath.Join(l.CacheDir(), images.VectorFile): "images: []\n",
		l.builtProgram("cni-" + localCloudPlugin):      "binary",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// The host reaches a landscape at its own addresses only, and each of them leads to a port of the node that serves it.
func TestWaysIntoTheNode(t *testing.T) {
	l := builtLandscape(t)
	loopback := netip.MustParseAddr("127.40.7.1")
	spec, err := l.nodeSpec(state{Loopback: loopback}, firstNode)
	if err != nil {
		t.Fatal(err)
	}
	seen, gateways := map[string]bool{}, 0
	for _, forward := range spec.Forwards {
		listen, err := netip.ParseAddrPort(forward.Listen)
		if err != nil || seen[forward.Listen] || listen.Addr().Less(loopback) ||
			!strings.HasPrefix(forward.Listen, "127.40.7.") {
			t.Errorf("%s (%v)", forward.Listen, err)
		}
		seen[forward.Listen] = true
		target := netip.MustParseAddrPort(forward.Target)
		if listen.Port() == bastionPort {
			if !bastionRange.Contains(target.Addr()) || target.Port() != sshPort {
				t.Errorf("%s leads to %s", forward.Listen, forward.Target)
			}
			continue
		}
		if target.Addr().String() != nodeIP || target.Port() != listen.Port() {
			t.Errorf("%s leads to %s", forward.Listen, forward.Target)
		}
		if listen.Port() == gatewayPort {
			gateways++
		}
	}
	if gateways != gatewayAddresses ||
		len(spec.Forwards) != gatewayAddresses+len(hostPorts)-1+len(bastionAddresses()) {
		t.Errorf("%d addresses of the gateway in %d ways", gateways, len(spec.Forwards))
	}
}

// All that the node writes lies in the landscape's folder, and only the program of Kubernetes is shared.
func TestVolumesOfTheNode(t *testing.T) {
	l := builtLandscape(t)
	spec, err := l.nodeSpec(state{Loopback: netip.MustParseAddr("127.40.7.1")}, firstNode)
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, mount := range spec.Mounts {
		if targets[mount.Target] {
			t.Errorf("%s is mounted twice", mount.Target)
		}
		targets[mount.Target] = true
		if !mount.ReadOnly && !strings.HasPrefix(mount.Source, l.StateDir()+"/") {
			t.Errorf("%s can be written and is not of the landscape", mount.Source)
		}
	}
	if !targets["/var/lib/etcd"] || !targets["/etc/kubernetes"] {
		t.Errorf("got %v", targets)
	}
	plugin := slices.IndexFunc(spec.Files, func(f node.File) bool { return f.Path == "/opt/cni/bin/"+localCloudPlugin })
	if plugin < 0 || spec.Files[plugin].Mode != 0o755 {
		t.Errorf("the plugin of the local cloud is missing: %d", plugin)
	}
	again, err := l.nodeSpec(state{Loopback: netip.MustParseAddr("127.40.7.1")}, firstNode)
	if err != nil || !again.Equal(spec) {
		t.Errorf("the same landscape has another node, and `up` would ask for a new start: %v", err)
	}
}

// Clients of the API start when it answers; before, kubelet would hold them back for failing.
func TestStaticPodsComeInTurn(t *testing.T) {
	l := builtLandscape(t)
	s := state{Loopback: netip.MustParseAddr("127.40.7.1")}
	pods := func() (found []string) {
		t.Helper()
		err := filepath.WalkDir(l.kubernetesDir(firstNode), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && strings.Contains(path, "/manifests/") && !entry.IsDir() {
				found = append(found, entry.Name())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if err := l.prepareRuntime(s, false); err != nil {
		t.Fatal(err)
	}
	for _, name := range pods() {
		if slices.Contains(clientsOfAPI, name) {
			t.Errorf("%s is there too early", name)
		}
	}
	first := len(pods())
	if err := l.prepareRuntime(s, true); err != nil {
		t.Fatal(err)
	}
	if got := pods(); first == 0 || len(got) != first+len(clientsOfAPI) {
		t.Errorf("first %d, then %v", first, got)
	}
	config, err := clientcmd.LoadFromFile(l.RuntimeKubeconfig())
	if err != nil || config.Clusters[config.Contexts[config.CurrentContext].Cluster].Server !=
		"https://127.40.7.1:6443" {
		t.Errorf("got %+v, %v", config, err)
	}
	if info, err := os.Stat(l.RuntimeKubeconfig()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("an administrator's key may be read by others: %v, %v", info.Mode(), err)
	}
}

// The garden's names lead to the gateway, and each route to one Service of the garden's namespace.
func TestNamesOfTheGarden(t *testing.T) {
	for name, address := range gardenRecords() {
		if !strings.HasSuffix(name, "."+domain) || address != nodeIP {
			t.Errorf("%s leads to %v", name, address)
		}
	}
	route := routeTo("garden", gardenHost, "kube-apiserver")
	hosts, _, err := unstructured.NestedStringSlice(route.Object, "spec", "hostnames")
	if err != nil || !slices.Equal(hosts, []string{gardenHost}) || route.GetNamespace() != gardenNS ||
		route.GetKind()+" "+route.GetNamespace()+"/"+route.GetName() != "TLSRoute garden/garden" {
		t.Errorf("got %+v, %v", route, err)
	}
}

// The log of a landscape has what programs say and what failed; people see one line a phase.
func TestTheLogOfARun(t *testing.T) {
	l, err := New("other", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	progress := NewProgress(out)
	closeLog, err := l.openLog(progress)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Landscape: l, Progress: progress}
	err = r.runPhase(t.Context(), phase{title: "Build", patience: 1 << 40, run: func(_ context.Context, r *run) error {
		r.Step("compiling")
		_, err := r.Write([]byte("go: a detail\n"))
		return errors.Join(err, errors.New("no space"))
	}})
	closeLog()
	if err == nil {
		t.Error("the phase succeeded")
	}
	if _, err := progress.Write([]byte("too late\n")); err != nil {
		t.Errorf("who writes after the end: %v", err)
	}
	log, err := os.ReadFile(l.Log())
	if err != nil {
		t.Fatal(err)
	}
	shown, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"compiling", "go: a detail", "no space"} {
		if !strings.Contains(string(log), part) {
			t.Errorf("%q is missing in the log:\n%s", part, log)
		}
	}
	if strings.Contains(string(log), "too late") || strings.Contains(string(shown), "a detail") ||
		!strings.Contains(string(shown), "✘ Build (") {
		t.Errorf("shown:\n%s\nlog:\n%s", shown, log)
	}
}
