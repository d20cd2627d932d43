//go:build e2e && nodes

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// zonalManifest is a shoot that outlasts the loss of a zone. It has no machines, as all of these are on the first node,
// and stays out of the fleet, whose tests count members.
const zonalManifest = `
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata:
  name: zonal
  namespace: garden-demo
  labels:
    federation.trellis.garden/join: "false"
spec:
  cloudProfile: {kind: CloudProfile, name: local}
  region: local
  kubernetes: {version: 1.36.3}
  provider: {type: local}
  controlPlane: {highAvailability: {failureTolerance: {type: zone}}}
`

// firstNode has what a landscape has once: draining it stops all machines, and the way to every API.
const firstNode = "local-node"

// openWithZones is open for tests that need three nodes, each in a zone. It returns the zones by node.
func openWithZones(t *testing.T) (*landscape, map[string]string) {
	t.Helper()
	l := open(t)
	zones := map[string]string{}
	out := l.runtimeKubectl().run(t, "get", "nodes", "-o",
		`go-template={{range .items}}{{.metadata.name}} {{index .metadata.labels "topology.kubernetes.io/zone"}}{{"\n"}}{{end}}`)
	for line := range strings.Lines(out) {
		var name, zone string
		if _, err := fmt.Sscan(line, &name, &zone); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		zones[name] = zone
	}
	if len(zones) != 3 {
		t.Skipf("landscape %s has %d node(s), and this test needs three: `make up NODES=3 NAME=%s`", l.name, len(zones),
			l.name)
	}
	return l, zones
}

// Each node is told of, can be entered, and has a zone of its own, which the seed knows, and a part of the network of
// pods. A landscape does not lose nodes on the way.
func TestNodesOfTheLandscape(t *testing.T) {
	l, zones := openWithZones(t)
	status, err := l.command(t.Context(), "", "landscape", "status", "--name", l.name)
	if err != nil {
		t.Errorf("%v\n%s", err, status)
	}
	seen := map[string]bool{}
	for name, zone := range zones {
		if seen[zone] {
			t.Errorf("zone %s is that of two nodes: %v", zone, zones)
		}
		seen[zone] = true
		if name != firstNode && !strings.Contains(status, "node "+name) {
			t.Errorf("the status does not tell of %s:\n%s", name, status)
		}
		if out, err := l.command(t.Context(), "", "landscape", "exec", "--name", l.name, "--node", name, "--",
			"hostname"); err != nil || strings.TrimSpace(out) != name {
			t.Errorf("in %s: got %q, %v", name, out, err)
		}
	}
	known := strings.Fields(l.gardenKubectl().run(t, "get", "seed", "local", "-o",
		"go-template={{range .spec.provider.zones}}{{.}} {{end}}"))
	for _, zone := range known {
		delete(seen, zone)
	}
	if len(known) != 3 || len(seen) > 0 {
		t.Errorf("the seed has zones %v, and its nodes %v", known, zones)
	}
	networks := strings.Fields(l.runtimeKubectl().run(t, "get", "nodes", "-o",
		"go-template={{range .items}}{{.spec.podCIDR}} {{end}}"))
	if slices.Sort(networks); len(slices.Compact(networks)) != 3 {
		t.Errorf("networks of pods: %v", networks)
	}
	if _, err := l.command(t.Context(), "", "landscape", "up", "--name", l.name, "--no-build", "--nodes", "1"); err == nil ||
		!strings.Contains(err.Error(), "has 3 nodes and cannot go back to 1") {
		t.Errorf("going back to one node: got %v", err)
	}
}

// The control plane of a shoot that is to outlast the loss of a zone has its members in different zones, as the garden
// has. Both answer while a node is drained, with all that runs there.
func TestAZoneIsLost(t *testing.T) {
	l, zones := openWithZones(t)
	const namespace = "shoot--demo--zonal"
	garden, seed := l.gardenKubectl(), l.runtimeKubectl()
	l.explainShoot(t, "zonal")
	whenFailed(t, func(_ context.Context, ask func(of kubectl, arguments ...string)) {
		ask(seed, "get", "nodes", "-o", "wide")
		ask(seed, "-n", namespace, "get", "pods,persistentvolumeclaims,poddisruptionbudgets", "-o", "wide")
	})
	garden.apply(t, zonalManifest)
	l.waitForShoot(t, "zonal", "Create", 10*time.Minute)
	shoot := l.shoot(t, "zonal")
	for _, role := range []string{"main", "events"} {
		l.membersOfEtcd(t, namespace, role)
		members := []string{"etcd-" + role + "-0", "etcd-" + role + "-1", "etcd-" + role + "-2"}
		inDifferentZones(t, zones, l.nodesOfPods(t, namespace, members...), 3)
	}
	servers := l.nodesOfPods(t, namespace, "-l", "app=kubernetes,role=apiserver")
	inDifferentZones(t, zones, servers, 2)

	l.gardenInZones(t, zones)

	lost := slices.DeleteFunc(servers, func(node string) bool { return node == firstNode })[0]
	t.Cleanup(func() { _, _ = seed.try(context.Background(), "", "uncordon", lost) })
	api, gardenAPI := probeAPI(t, shoot), probeAPI(t, garden)
	shoots := probePath(t, garden, "/apis/core.gardener.cloud/v1beta1/namespaces/garden-demo/shoots/zonal")
	seed.run(t, "drain", lost, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=8m")
	seed.run(t, "-n", namespace, "rollout", "status", "deployment/kube-apiserver", "--timeout=5m")
	seed.eventually(t, time.Minute, equals("2"), "-n", namespace, "get", "statefulset", "etcd-main", "-o",
		"jsonpath={.status.readyReplicas}")
	if left := l.nodesOfPods(t, namespace, "-l", "app=kubernetes,role=apiserver"); slices.Contains(left, lost) {
		t.Errorf("kube-apiserver is still on %s: %v", lost, left)
	}
	const written = "{apiVersion: v1, kind: ConfigMap, metadata: {name: written-without-a-zone}}"
	shoot.apply(t, written)
	garden.run(t, "-n", "garden-demo", "annotate", "shoot", "zonal", "e2e.trellis.garden/written-without=a-zone")
	api.stop().allAnswered(t, "kube-apiserver, while "+lost+" was drained")
	gardenAPI.stop().allAnswered(t, "the garden's kube-apiserver, while "+lost+" was drained")
	shoots.stop().allAnswered(t, "garden-apiserver, while "+lost+" was drained")
	l.gardenLeads(t)

	seed.run(t, "uncordon", lost)
	for _, role := range []string{"main", "events"} {
		l.membersOfEtcd(t, namespace, role)
	}
	shoot.eventually(t, time.Minute, contains("written-without-a-zone"), "get", "configmap", "written-without-a-zone",
		"-o", "name")
	for _, role := range []string{"main", "events"} {
		seed.eventually(t, 3*time.Minute, equals("3"), "-n", "garden", "get", "statefulset", "etcd-"+role, "-o",
			"jsonpath={.status.readyReplicas}")
	}
	// Gardenlet may have been on that node, too, and its seed has to tell of itself again.
	garden.eventually(t, 5*time.Minute, equals("True"), "get", "seed", "local", "-o", conditionStatus("GardenletReady"))
	l.deleteShoot(t, "zonal")
}

// gardenInZones has the garden, and what it needs of the runtime cluster, run in different zones.
func (l *landscape) gardenInZones(t *testing.T, zones map[string]string) {
	t.Helper()
	for _, etcd := range []string{"etcd-main", "etcd-events"} {
		inDifferentZones(t, zones, l.nodesOfPods(t, "garden", etcd+"-0", etcd+"-1", etcd+"-2"), 3)
	}
	for _, labels := range []string{
		"app=kubernetes,role=apiserver", "app=kubernetes,role=controller-manager", "app=gardener,role=apiserver",
		"app=gardener,role=controller-manager", "app=gardener,role=scheduler",
	} {
		inDifferentZones(t, zones, l.nodesOfPods(t, "garden", "-l", labels), 2)
	}
	inDifferentZones(t, zones, l.nodesOfPods(t, "kube-system", "-l", "k8s-app=kube-dns"), 2)
	if gateways := l.nodesOfPods(t, "garden", "-l", "app=gateway"); !slices.Equal(gateways,
		[]string{firstNode, firstNode}) {
		t.Errorf("gateways run on %v, want two on %s, which has their address", gateways, firstNode)
	}
	l.gardenLeads(t)
}

// gardenLeads has one of each of the garden's controllers hold the lease by which it works.
func (l *landscape) gardenLeads(t *testing.T) {
	t.Helper()
	for _, name := range []string{"garden-controller-manager", "garden-scheduler"} {
		l.gardenKubectl().eventually(t, 2*time.Minute, contains(name+"-"), "-n", "garden", "get", "lease", name, "-o",
			"jsonpath={.spec.holderIdentity}")
	}
}

// nodesOfPods returns the nodes of pods, by their names or a selector.
func (l *landscape) nodesOfPods(t *testing.T, namespace string, which ...string) []string {
	t.Helper()
	arguments := append([]string{"-n", namespace, "get", "pods", "-o",
		"go-template={{range .items}}{{.spec.nodeName}} {{end}}"}, which...)
	return strings.Fields(l.runtimeKubectl().run(t, arguments...))
}

// inDifferentZones has so many pods run in as many zones.
func inDifferentZones(t *testing.T, zones map[string]string, nodes []string, count int) {
	t.Helper()
	used := map[string]bool{}
	for _, node := range nodes {
		used[zones[node]] = true
	}
	if len(nodes) != count || len(used) != count {
		t.Fatalf("pods run on %v in zones %v, want %d in different ones", nodes, used, count)
	}
}
