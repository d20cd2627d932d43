//go:build e2e && upgrade

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The versions between which a shoot is upgraded.
const (
	olderVersion = "1.35.4"
	newerVersion = "1.36.3"
)

// A shoot with a highly available control plane is upgraded to the next minor version of Kubernetes: the control plane,
// with the pool that follows it, then the pool that has a version of its own, and never both. Then all of its
// credentials are rotated. The API, and what runs with two replicas and a disruption budget, answer all requests
// meanwhile. An upgrade that a disruption budget blocks tells so.
func TestUpgrade(t *testing.T) {
	l := open(t)
	l.explainShoot(t, "older")
	l.gardenKubectl().apply(t, testdata(t, "shoot-older.yaml"))
	l.waitForShoot(t, "older", "Create", 15*time.Minute)
	shoot := l.shoot(t, "older")
	shoot.eventually(t, time.Minute, equals(olderVersion+" "+olderVersion+" "+olderVersion), versionsOfNodes("")...)
	web := l.probeWeb(t, "older", "work", shoot)

	api := probeAPI(t, shoot)
	l.setVersion(t, "/spec/kubernetes/version", newerVersion)
	l.waitForShoot(t, "older", "Reconcile", 20*time.Minute)
	shoot.eventually(t, time.Minute, equals(newerVersion+" "+newerVersion), versionsOfNodes("work")...)
	shoot.eventually(t, time.Minute, equals(olderVersion), versionsOfNodes("probe")...)
	shoot.eventually(t, time.Minute, contains(newerVersion), "version")
	api.stop().allAnswered(t, "kube-apiserver, in an upgrade")
	web.stop(t, shoot).allAnswered(t, "web server, in an upgrade")

	l.upgradeBlockedByABudget(t, shoot)
	shoot.eventually(t, time.Minute, equals(newerVersion+" "+newerVersion+" "+newerVersion), versionsOfNodes("")...)

	shoot = l.shoot(t, "older") // A kubeconfig is good for an hour.
	web = l.probeWeb(t, "older", "work", shoot)
	between := l.rotate(t, "older", shoot, probes.allAnswered)
	web.stop(t, between).allAnswered(t, "web server, in a rotation")
	l.deleteShoot(t, "older")
}

// upgradeBlockedByABudget upgrades pool probe, with a pod there that may not be evicted. The Shoot tells the node and
// the budget. Without the budget, the upgrade goes on by itself.
func (l *landscape) upgradeBlockedByABudget(t *testing.T, shoot kubectl) {
	t.Helper()
	const manifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: stubborn, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: stubborn}}
  template:
    metadata: {labels: {app: stubborn}}
    spec:
      nodeSelector: {worker.gardener.cloud/pool: probe}
      containers: [{name: nginx, image: nginx}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: stubborn, namespace: default}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: stubborn}}}
`
	shoot.apply(t, manifest)
	shoot.run(t, "rollout", "status", "deployment/stubborn", "--timeout=3m")
	node := shoot.run(t, "get", "nodes", "-l", "worker.gardener.cloud/pool=probe", "-o",
		"jsonpath={.items[0].metadata.name}")
	l.setVersion(t, "/spec/provider/workers/1/kubernetes/version", newerVersion)
	told := contains("PodDisruptionBudget default/stubborn", "node "+node+" of machine",
		"ERR_RETRYABLE_CONFIGURATION_PROBLEM")
	l.gardenKubectl().eventually(t, 8*time.Minute, told, "-n", "garden-demo", "get", "shoot", "older", "-o",
		"jsonpath={.status.lastErrors}")
	shoot.run(t, "delete", "poddisruptionbudget", "stubborn")
	l.waitForShoot(t, "older", "Reconcile", 10*time.Minute)
	shoot.run(t, "delete", "deployment", "stubborn")
}

// A Shoot goes back to no version, and past none.
func TestUpgradesThatAreRefused(t *testing.T) {
	l := open(t)
	for version, reason := range map[string]string{olderVersion: "spec.kubernetes.version", "1.99.0": "1.99.0"} {
		patch := fmt.Sprintf(`{"spec":{"kubernetes":{"version":%q}}}`, version)
		if _, err := l.gardenKubectl().try(t.Context(), "", "-n", "garden-demo", "patch", "shoot", "member1",
			"--type=merge", "-p", patch); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("to %s: got %v, want an error with %s", version, err, reason)
		}
	}
}

func (l *landscape) setVersion(t *testing.T, path, version string) {
	t.Helper()
	patch := fmt.Sprintf(`[{"op": "replace", "path": %q, "value": %q}]`, path, version)
	l.gardenKubectl().run(t, "-n", "garden-demo", "patch", "shoot", "older", "--type=json", "-p", patch)
}

// versionsOfNodes are arguments of kubectl that print the kubelets' versions of a pool, or of all, in order.
func versionsOfNodes(pool string) []string {
	arguments := []string{
		"get", "nodes", "--sort-by=.status.nodeInfo.kubeletVersion", "-o",
		`go-template={{range .items}}{{slice .status.nodeInfo.kubeletVersion 1}} {{end}}`,
	}
	if pool != "" {
		arguments = append(arguments, "-l", "worker.gardener.cloud/pool="+pool)
	}
	return arguments
}
