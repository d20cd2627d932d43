package landscape

import (
	"crypto/x509"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/landscape/node"
)

// Nodes differ in all that must not be shared, and lie in the networks that the landscape has.
func TestNodesKeepApart(t *testing.T) {
	pods, machines := netip.MustParsePrefix(podNetwork), netip.MustParsePrefix(nodeIP+"/24").Masked()
	seen := map[string]bool{}
	var networks []netip.Prefix
	for _, n := range nodesOf(maxNodes) {
		for _, own := range []string{n.hostname(), n.ip().String(), n.folder(), "zone " + n.zone()} {
			if seen[own] {
				t.Errorf("%s is of two nodes", own)
			}
			seen[own] = true
		}
		if !machines.Contains(n.ip()) || n.ip().String() == nodeGateway {
			t.Errorf("%s has the address %s", n.hostname(), n.ip())
		}
		// The name is that of a link, too.
		if len(n.hostname()) > 15 {
			t.Errorf("%s is too long", n.hostname())
		}
		own := n.pods()
		if own != own.Masked() || !pods.Contains(own.Addr()) {
			t.Errorf("pods of %s are in %s", n.hostname(), own)
		}
		if slices.ContainsFunc(networks, own.Overlaps) {
			t.Errorf("%s of %s overlaps one of %v", own, n.hostname(), networks)
		}
		networks = append(networks, own)
	}
	if firstNode.hostname() != nodeName || firstNode.ip().String() != nodeIP || firstNode.folder() != "node" {
		t.Errorf("the first node is %s at %s", firstNode.hostname(), firstNode.ip())
	}
}

// Each node knows the way to the pods of every other one that there may be, so that it needs no change when one comes.
func TestWaysBetweenNodes(t *testing.T) {
	for _, n := range nodesOf(maxNodes) {
		routes := n.routes()
		if len(routes) != maxNodes-1 {
			t.Errorf("%s has %d ways", n.hostname(), len(routes))
		}
		for _, other := range nodesOf(maxNodes) {
			leads := slices.ContainsFunc(routes, func(r node.Route) bool {
				return r.Network == other.pods().String() && r.Via == other.ip().String()
			})
			if leads == (n == other) {
				t.Errorf("%s to the pods of %s: %v", n.hostname(), other.hostname(), leads)
			}
		}
	}
}

func TestNodesWanted(t *testing.T) {
	l, err := New("other", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		present, asked, want int
		refused              string
	}{
		"a new landscape has one":        {0, 0, 1, ""},
		"or as many as are asked for":    {0, 3, 3, ""},
		"it stays as it is":              {3, 0, 3, ""},
		"and when asked for the same":    {3, 3, 3, ""},
		"it grows":                       {1, 3, 3, ""},
		"it does not shrink":             {3, 1, 0, "has 3 nodes and cannot go back to 1"},
		"and says how it can":            {3, 2, 0, "`make down NAME=other` removes it"},
		"none is no number":              {0, -1, 0, "--nodes is -1, and has to be a number from 1 to 9"},
		"nor are more than there may be": {1, 10, 0, "--nodes is 10, and has to be a number from 1 to 9"},
	} {
		got, err := l.nodesWanted(test.present, test.asked)
		if got != test.want || (err == nil) != (test.refused == "") ||
			err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: got %d, %v", name, got, err)
		}
	}
}

// What is no number of nodes is refused in the words of who types it.
func TestParseNodes(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "1": 1, "9": 9} {
		if got, err := ParseNodes(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "10", "3 ", "2.5", "99999999999999999999"} {
		if got, err := ParseNodes(text); err == nil ||
			err.Error() != "has to be a number from 1 to 9, as in `make up NODES=3`" {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
}

func TestNodesByName(t *testing.T) {
	for name, want := range map[string]nodeNumber{"": 1, "local-node": 1, "local-node-3": 3} {
		if n, err := nodeNamed(name, 3); err != nil || n != want {
			t.Errorf("%q: got %d, %v", name, n, err)
		}
	}
	if _, err := nodeNamed("local-node-4", 3); err == nil ||
		!strings.Contains(err.Error(), "the nodes are local-node, local-node-2, local-node-3") {
		t.Errorf("got %v", err)
	}
}

// Who is told how to go on is told of nodes that are not yet kept.
func TestARunThatFailedKnowsItsNodes(t *testing.T) {
	l, err := New("other", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for want, r := range map[string]*run{
		"`make up NAME=other`":         {Landscape: l, wanted: 3, state: state{Nodes: 3}},
		"`make up NODES=3 NAME=other`": {Landscape: l, wanted: 3},
	} {
		if got := r.again(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// How many nodes there are outlasts the run that made them; landscapes of before have one.
func TestTheNumberOfNodesIsKept(t *testing.T) {
	l, err := New("other", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(l.StateDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		content string
		want    int
	}{{`{"name":"other"}`, 1}, {`{"name":"other","nodes":3}`, 3}} {
		if err := os.WriteFile(l.path("state.json"), []byte(test.content), 0o644); err != nil {
			t.Fatal(err)
		}
		if s, err := l.state(); err != nil || s.nodes() != test.want {
			t.Errorf("%s: got %d, %v", test.content, s.nodes(), err)
		}
	}
	// People are told of all of them.
	lines := l.otherNodes(t.Context(), fake.NewClientBuilder().Build())
	if len(lines) != 2 || lines[0].part != "node local-node-2" || lines[0].healthy ||
		!strings.Contains(lines[1].detail, "`make up NAME=other` starts it") {
		t.Errorf("got %+v", lines)
	}
}

// Another node is connected to the first and serves nobody; the first one is what it is without others.
func TestSpecOfAnotherNode(t *testing.T) {
	l := builtLandscape(t)
	s := state{Loopback: netip.MustParseAddr("127.40.7.1")}
	first, err := l.nodeSpec(s, firstNode)
	if err != nil {
		t.Fatal(err)
	}
	s.Nodes = 3
	if again, err := l.nodeSpec(s, firstNode); err != nil || !again.Equal(first) {
		t.Errorf("the first node would have to be started anew for others: %v", err)
	}
	if first.Cgroup != "" || first.Switch != "" {
		t.Errorf("got %+v", first)
	}
	other, err := l.nodeSpec(s, 2)
	if err != nil {
		t.Fatal(err)
	}
	if other.Hostname != "local-node-2" || other.Address != "172.18.0.3/24" || other.Switch != first.Dir ||
		other.Cgroup != "node-2" || len(other.Forwards)+len(other.Helpers) > 0 {
		t.Errorf("got %+v", other)
	}
	for _, mount := range other.Mounts {
		if !mount.ReadOnly && !strings.HasPrefix(mount.Source, l.path("node-2")+"/") {
			t.Errorf("%s can be written and is not of this node", mount.Source)
		}
	}
	for path, want := range map[string]string{
		"/etc/resolv.conf": "nameserver 10.2.0.10\n",
		"/etc/containerd/certs.d/_default/hosts.toml": `"http://172.18.0.2:5000"`,
		"/etc/hosts":                           "172.18.0.3 local-node-2\n",
		"/etc/cni/net.d/10-landscape.conflist": `"10.1.16.0/20"`,
		"/etc/systemd/system/kubelet.service": "topology.kubernetes.io/region=local,topology.kubernetes.io/zone=local-2," +
			otherNode + "\n",
	} {
		i := slices.IndexFunc(other.Files, func(f node.File) bool { return f.Path == path })
		if i < 0 || !strings.Contains(other.Files[i].Content, want) {
			t.Errorf("%s lacks %s: %+v", path, want, other.Files[max(i, 0)].Content)
		}
	}
	i := slices.IndexFunc(first.Files, func(f node.File) bool { return strings.HasSuffix(f.Path, "/kubelet.service") })
	if !strings.Contains(first.Files[i].Content, "topology.kubernetes.io/zone=local\n") {
		t.Errorf("labels of the first node: %s", first.Files[i].Content)
	}
}

// Who has another node has no more than that: its kubelet's identity, and no key that signs or administers.
func TestAttackKeysOfAnotherNode(t *testing.T) {
	l := builtLandscape(t)
	if err := l.prepareRuntime(state{Loopback: netip.MustParseAddr("127.40.7.1")}, true); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.prepareNode(2); err != nil {
			t.Fatal(err)
		}
	}
	var found []string
	err := filepath.WalkDir(l.kubernetesDir(2), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, strings.TrimPrefix(path, l.kubernetesDir(2)+"/"))
		}
		return err
	})
	want := []string{
		"kube-proxy.kubeconfig", "kube-proxy.yaml", "kubelet.kubeconfig", "kubelet.yaml", "manifests/kube-proxy.yaml",
		"pki/ca.crt", "pki/kube-proxy.crt", "pki/kube-proxy.key", "pki/kubelet-server.crt", "pki/kubelet-server.key",
		"pki/kubelet.crt", "pki/kubelet.key",
	}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("got %v, %v, want %v", found, err, want)
	}
	own := pki{dir: filepath.Join(l.kubernetesDir(2), "pki")}
	client, _, err := own.load("kubelet")
	if err != nil || client.Subject.CommonName != "system:node:local-node-2" ||
		!slices.Equal(client.Subject.Organization, []string{"system:nodes"}) {
		t.Errorf("kubelet is %v, %v", client.Subject, err)
	}
	authority, _, err := l.runtimePKI().load("ca")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	server, _, err := own.load("kubelet-server")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: "172.18.0.3"}); err != nil {
		t.Error(err)
	}
	if server.VerifyHostname(nodeIP) == nil {
		t.Error("another node can pose as the first")
	}
	config, err := clientcmd.LoadFromFile(filepath.Join(l.kubernetesDir(2), "kubelet.kubeconfig"))
	if err != nil || config.Clusters[config.Contexts[config.CurrentContext].Cluster].Server !=
		"https://172.18.0.2:6443" {
		t.Errorf("got %+v, %v", config, err)
	}
}

// Kubelet and kube-proxy of another node listen at its address, and serve it under its name.
func TestConfigurationOfAnotherNode(t *testing.T) {
	l := builtLandscape(t)
	if err := l.prepareRuntime(state{Loopback: netip.MustParseAddr("127.40.7.1")}, true); err != nil {
		t.Fatal(err)
	}
	if err := l.prepareNode(3); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]map[string]any{
		"kubelet.yaml":    {"address": "172.18.0.4", "tlsCertFile": "/etc/kubernetes/pki/kubelet-server.crt"},
		"kube-proxy.yaml": {"hostnameOverride": "local-node-3", "clusterCIDR": podNetwork},
	} {
		data, err := os.ReadFile(filepath.Join(l.kubernetesDir(3), name))
		if err != nil {
			t.Fatal(err)
		}
		config := map[string]any{}
		if err := yaml.Unmarshal(data, &config); err != nil {
			t.Fatal(err)
		}
		for key, value := range want {
			if config[key] != value {
				t.Errorf("%s: %s is %v, want %v", name, key, config[key], value)
			}
		}
	}
}

// The seed has the zones of its nodes, and with one node what its file says.
func TestZonesOfTheSeed(t *testing.T) {
	for count, want := range map[int][]string{1: {"a"}, 3: {"local", "local-2", "local-3"}} {
		config, err := readYAML("../../landscape/local/gardenlet.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := setZones(config, count); err != nil {
			t.Fatal(err)
		}
		zones, _, err := unstructured.NestedStringSlice(config, "seedConfig", "spec", "provider", "zones")
		if err != nil || !slices.Equal(zones, want) {
			t.Errorf("%d nodes: got %v, %v, want %v", count, zones, err, want)
		}
	}
}

// The label by which machines keep away from other nodes is written in two places that must not import each other.
func TestMachinesKnowTheLabelOfOtherNodes(t *testing.T) {
	text, err := os.ReadFile("../../extensions/provider-local/pkg/apis/types.go")
	if err != nil {
		t.Fatal(err)
	}
	key, value, _ := strings.Cut(otherNode, "=")
	for _, part := range []string{`"` + key + `"`, `"` + value + `"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("provider-local does not know %s", part)
		}
	}
}

// What was written before there were other nodes stays where it lies.
func TestVolumesStayOnTheFirstNode(t *testing.T) {
	made := func(name, class string, affinity *corev1.VolumeNodeAffinity) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PersistentVolumeSpec{StorageClassName: class, NodeAffinity: affinity},
		}
	}
	elsewhere := &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"local-node-2"}},
		}}},
	}}
	c := fake.NewClientBuilder().WithObjects(made("old", volumeClass, nil), made("others", "disk", nil),
		made("there", volumeClass, elsewhere)).Build()
	for range 2 {
		if err := bindVolumes(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"old": nodeName, "others": "", "there": "local-node-2"} {
		volume, got := &corev1.PersistentVolume{}, ""
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, volume); err != nil {
			t.Fatal(err)
		}
		if volume.Spec.NodeAffinity != nil {
			got = volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
		}
		if got != want {
			t.Errorf("volume %s is bound to %q, want %q", name, got, want)
		}
	}
}

// The class goes only when it has to become another; who has one node never waits for it.
func TestVolumeClassFollowsTheNodes(t *testing.T) {
	for name, test := range map[string]struct {
		mode    storagev1.VolumeBindingMode
		several bool
		goes    bool
	}{
		"one node":                {storagev1.VolumeBindingImmediate, false, false},
		"one node becomes three":  {storagev1.VolumeBindingImmediate, true, true},
		"three nodes, once again": {storagev1.VolumeBindingWaitForFirstConsumer, true, false},
	} {
		class := &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: volumeClass}, VolumeBindingMode: &test.mode,
		}
		c := fake.NewClientBuilder().WithObjects(class).Build()
		for range 2 {
			if err := clearVolumeClass(t.Context(), c, test.several); err != nil {
				t.Fatal(err)
			}
		}
		err := c.Get(t.Context(), client.ObjectKeyFromObject(class), class)
		if apierrors.IsNotFound(err) != test.goes {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestANodeIsGivenItsPodsOnce(t *testing.T) {
	for before, want := range map[string]string{"": "10.1.16.0/20", "10.1.0.0/16": "10.1.0.0/16"} {
		present := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "local-node-2"}}
		present.Spec.PodCIDR = before
		c := fake.NewClientBuilder().WithObjects(present).Build()
		for range 2 {
			if err := giveNetwork(t.Context(), c, 2); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(present), present); err != nil ||
			present.Spec.PodCIDR != want {
			t.Errorf("got %s, %v, want %s", present.Spec.PodCIDR, err, want)
		}
	}
	if err := giveNetwork(t.Context(), fake.NewClientBuilder().Build(), 2); err == nil {
		t.Error("a node that did not register was given a network")
	}
}

// A machine on which so many nodes would fail later is refused at once, with what it has and what they need.
func TestWhatNodesNeedOfTheHost(t *testing.T) {
	const many = 1_000_000
	if err := checkMemory(many); err == nil || !strings.Contains(err.Error(), "needs 1000006 GiB on 1000000 node(s)") {
		t.Errorf("memory: got %v", err)
	}
}
