//go:build e2e && lostseed

package e2e

import (
	"bufio"
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// lostSeed is the heading of docs/operating.md whose commands restore shoots of a seed that is gone.
const lostSeed = "### Drill: a seed is lost"

// A seed is lost: its gardenlet is silent, and its control planes do not answer. The shoot that it has comes up on
// another one, the same cluster with its objects. Then the lost seed comes back, and takes down what it has of it.
func TestASeedIsLost(t *testing.T) {
	l := open(t)
	garden := l.gardenKubectl()
	manifest := input(t, l, "managedseed.yaml")
	t.Cleanup(func() { l.removeLostSeed(manifest) })
	shoot, managedSeed, _ := strings.Cut(manifest, managedSeedStart)
	garden.apply(t, shoot)
	l.waitForShootIn(t, "garden", "example", "Create", 8*time.Minute)
	garden.apply(t, managedSeedStart+managedSeed)
	for _, condition := range []string{"GardenletReady", "SeedSystemComponentsHealthy", "BackupBucketsReady"} {
		garden.eventually(t, 5*time.Minute, equals("True"), "get", "seed", "example", "--ignore-not-found", "-o",
			conditionStatus(condition))
	}
	garden.apply(t, guestManifest)
	l.waitForShoot(t, "guest", "Create", 8*time.Minute)
	inSeed := l.shootOf(t, "garden", "example")
	saved := l.shoot(t, "guest")
	before := saved.through(t, inSeed, "shoot--demo--guest")
	before.run(t, "create", "configmap", "before-the-loss")
	ofGuest := func(path string) []string {
		return []string{"-n", "garden-demo", "get", "shoot", "guest", "-o", "jsonpath=" + path}
	}
	garden.eventually(t, 3*time.Minute, contains("ca-client"), "-n", "garden-demo", "get", "shootstate", "guest", "-o",
		"jsonpath={.spec.gardener[*].name}")
	garden.eventually(t, 5*time.Minute, contains("ChangesSaved"),
		ofGuest(`{.status.conditions[?(@.type=="EtcdBackupReady")].reason}`)...)
	identity := before.run(t, "get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")

	inSeed.run(t, "-n", "garden", "scale", "deployment", "gardenlet", "--replicas=0")
	inSeed.run(t, "-n", "shoot--demo--guest", "scale", "deployment", "kube-apiserver", "--replicas=0")
	// etcd-steward saves what is not saved yet when it is stopped in order.
	inSeed.run(t, "-n", "shoot--demo--guest", "scale", "statefulset", "etcd-main", "--replicas=0")
	inSeed.run(t, "-n", "shoot--demo--guest", "wait", "--for=delete", "pod/etcd-main-0", "--timeout=2m")
	garden.eventually(t, 3*time.Minute, equals("Unknown"), "get", "seed", "example", "-o",
		conditionStatus("GardenletReady"))
	l.drill(t, lostSeed, "KUBECONFIG="+l.garden(), "LOST=example", "TO=local", "NAMESPACE=garden-demo", "SHOOT=guest")

	after := l.shoot(t, "guest")
	after.eventually(t, 2*time.Minute, contains("before-the-loss"), "get", "configmap", "before-the-loss")
	after.eventually(t, time.Minute, equals(identity), "get", "namespace", "kube-system", "-o",
		"jsonpath={.metadata.uid}")
	// The credentials of before the loss are good: the authorities are the same.
	saved.eventually(t, 2*time.Minute, contains("before-the-loss"), "get", "configmap", "before-the-loss")
	l.runtimeKubectl().eventually(t, time.Minute, contains("kube-apiserver"), "-n", "shoot--demo--guest", "get",
		"deployments", "-o", "name")

	// The lost seed comes back, with its control plane.
	inSeed.run(t, "-n", "shoot--demo--guest", "scale", "statefulset", "etcd-main", "--replicas=1")
	inSeed.run(t, "-n", "shoot--demo--guest", "scale", "deployment", "kube-apiserver", "--replicas=1")
	inSeed.run(t, "-n", "garden", "scale", "deployment", "gardenlet", "--replicas=1")
	inSeed.eventually(t, 8*time.Minute, equals(""), "get", "namespace", "shoot--demo--guest", "--ignore-not-found",
		"-o", "name")
	after.eventually(t, 2*time.Minute, contains("created"), "create", "configmap", "after-the-return")
	garden.eventually(t, 3*time.Minute, contains("ChangesSaved"),
		ofGuest(`{.status.conditions[?(@.type=="EtcdBackupReady")].reason}`)...)
}

// removeLostSeed asks for the end of all that the test has left. The seed is one again: nothing of it was lost.
func (l *landscape) removeLostSeed(manifest string) {
	ctx, garden := context.Background(), l.gardenKubectl()
	_, _ = garden.try(ctx, "", "annotate", "seed", "example", "confirmation.gardener.cloud/seed-lost-")
	l.removeManagedSeed(manifest)
}

// through returns kubectl for a shoot whose gateway only its seed reaches: what it sends goes by the seed's API to a
// kube-apiserver in a namespace there.
func (k kubectl) through(t *testing.T, seed kubectl, namespace string) kubectl {
	t.Helper()
	name := k.run(t, "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.tls-server-name}")
	forward := exec.CommandContext(t.Context(), k.l.bin("kubectl"), "--kubeconfig", seed.kubeconfig, "-n", namespace,
		"port-forward", "service/kube-apiserver", ":443")
	out, err := forward.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := forward.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = forward.Wait() }) // It ends with the test's context.
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("port-forward to %s said %q: %v", namespace, line, err)
	}
	address := strings.Fields(strings.TrimPrefix(line, "Forwarding from "))[0]
	k.further = []string{"--server=https://" + address, "--tls-server-name=" + name}
	return k
}
