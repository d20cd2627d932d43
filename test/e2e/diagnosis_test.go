//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// poolOfShoot prints the bounds of the first pool, and what the fleet remembers of it.
const poolOfShoot = `jsonpath={.spec.provider.workers[0].minimum} {.spec.provider.workers[0].maximum}{.metadata.annotations.federation\.trellis\.garden/grown-pools}`

// explainShoot has a test that fails log how a shoot of project demo is: what it waits for, who says what about its
// machines, and what both ends of its tunnel say.
func (l *landscape) explainShoot(t *testing.T, name string) {
	t.Helper()
	folder := t.TempDir()
	whenFailed(t, func(ctx context.Context, ask func(of kubectl, arguments ...string)) {
		garden, seed, namespace := l.gardenKubectl(), l.runtimeKubectl(), "shoot--demo--"+name
		ask(garden, "-n", "garden-demo", "get", "shoot", name, "-o",
			"jsonpath={.status.lastOperation} {.status.lastErrors} {.status.conditions}")
		ask(seed, "-n", "garden", "logs", "deploy/gardenlet", "--tail=15")
		ask(seed, "-n", "garden", "logs", "deploy/gateway", "--tail=8")
		ask(seed, "-n", namespace, "get", "workers,machines,managedresources")
		ask(seed, "-n", namespace, "logs", "deploy/vpn-seed-server", "--tail=8")
		ask(seed, "-n", namespace, "logs", "deploy/machine-controller-manager", "--all-containers", "--tail=8")
		shoot, err := l.tryShoot(ctx, folder, "demo", name)
		if err != nil {
			t.Logf("kubeconfig of %s: %v", name, err)
			return
		}
		ask(shoot, "get", "nodes", "-o", "wide")
		ask(shoot, "get", "pods", "-A", "-o", "wide")
		ask(shoot, "-n", "kube-system", "logs", "deploy/vpn-shoot", "--tail=8")
	})
}

// fleet returns kubectl for the fleet of project demo. A test that fails logs how its members are, what its controllers
// say, and whether its API leads to them.
func (l *landscape) fleet(t *testing.T) kubectl {
	t.Helper()
	fleet := l.shoot(t, "fleet")
	whenFailed(t, func(_ context.Context, ask func(of kubectl, arguments ...string)) {
		const namespace = "shoot--demo--fleet"
		ask(fleet, "get", "clusters", "-o", "wide")
		ask(fleet, "get", "resourcebindings,clusterresourcebindings", "-A")
		ask(fleet, "get", "apiservices", clusterv1alpha1.APIServiceName, "-o", "jsonpath={.status.conditions}")
		ask(l.runtimeKubectl(), "-n", namespace, "get", "pods", "-o", "wide")
		ask(l.runtimeKubectl(), "-n", namespace, "logs", "deploy/federation", "--tail=25")
		ask(l.runtimeKubectl(), "-n", namespace, "logs", "deploy/kube-apiserver", "--tail=10")
	})
	return fleet
}

// explainGrowth has a test that fails log what the fleet decided about machines of member2, with the times, and what
// became of them and of the pods that they are for.
func (l *landscape) explainGrowth(t *testing.T, fleet, member kubectl) {
	t.Helper()
	whenFailed(t, func(_ context.Context, ask func(of kubectl, arguments ...string)) {
		garden, seed, namespace := l.gardenKubectl(), l.runtimeKubectl(), "shoot--demo--member2"
		ask(fleet, "get", "fleetgrowths", "-o", "jsonpath={.items[*].status}")
		ask(fleet, "get", "resourcebindings", "-o", "jsonpath={.items[*].metadata.annotations}")
		ask(fleet, "get", "cluster", "member2", "-o", "jsonpath={.status.resourceSummary} {.status.nodeSummary}")
		ask(garden, "-n", "garden-demo", "get", "shoot", "member2", "-o", poolOfShoot)
		ask(seed, "-n", namespace, "get", "machines,machinedeployments", "-o", "wide")
		ask(seed, "-n", namespace, "logs", "deploy/cluster-autoscaler", "--tail=25")
		ask(member, "get", "nodes", "-o", "wide")
		ask(member, "get", "pods", "-o", "wide")
		ask(member, "get", "events", "--sort-by=.lastTimestamp")
	})
}

// whenFailed has a test that fails log the answers to questions.
func whenFailed(t *testing.T, questions func(ctx context.Context, ask func(of kubectl, arguments ...string))) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		questions(ctx, func(of kubectl, arguments ...string) {
			out, err := of.try(ctx, "", arguments...)
			t.Logf("kubectl %v: %v\n%s", arguments, err, out)
		})
	})
}
