//go:build e2e && upgrade

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// keeper runs on every node. What it has written once, on the machine and into its own volume, is told as long as
// machine and pod are the same.
const keeper = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: keeper, namespace: default}
spec:
  selector: {matchLabels: {app: keeper}}
  template:
    metadata: {labels: {app: keeper}}
    spec:
      tolerations: [{operator: Exists}]
      containers:
      - name: keeper
        image: nginx
        command: [sh, -c]
        args:
        - |
          for dir in /machine /pod; do
            test -e $dir/id || cat /proc/sys/kernel/random/uuid > $dir/id
          done
          touch /tmp/ready
          sleep infinity
        readinessProbe: {exec: {command: [test, -e, /tmp/ready]}, periodSeconds: 1}
        volumeMounts: [{name: machine, mountPath: /machine}, {name: pod, mountPath: /pod}]
      volumes:
      - {name: machine, hostPath: {path: /var/lib/keeper, type: DirectoryOrCreate}}
      - {name: pod, emptyDir: {}}
`

// Machines of two pools are updated in place: those of one by themselves, one after the other, that of the other pool
// when its node is chosen. Kubernetes goes to the next minor version, then all credentials are rotated. Nodes, machines
// and what is on them stay.
func TestUpgradeInPlace(t *testing.T) {
	l := open(t)
	l.explainShoot(t, "inplace")
	l.gardenKubectl().apply(t, testdata(t, "shoot-inplace.yaml"))
	l.waitForShoot(t, "inplace", "Create", 15*time.Minute)
	shoot := l.shoot(t, "inplace")
	shoot.eventually(t, time.Minute, equals(olderVersion+" "+olderVersion+" "+olderVersion), versionsOfNodes("")...)
	shoot.apply(t, keeper)
	shoot.run(t, "rollout", "status", "daemonset/keeper", "--timeout=3m")
	before := kept(t, shoot, "/machine/id", "/pod/id")
	web := l.probeWeb(t, "inplace", "auto", shoot)

	patch := fmt.Sprintf(`[{"op": "replace", "path": "/spec/kubernetes/version", "value": %q}]`, newerVersion)
	l.gardenKubectl().run(t, "-n", "garden-demo", "patch", "shoot", "inplace", "--type=json", "-p", patch)
	l.waitForShoot(t, "inplace", "Reconcile", 25*time.Minute)
	shoot.eventually(t, time.Minute, equals(newerVersion+" "+newerVersion), versionsOfNodes("auto")...)
	shoot.eventually(t, time.Minute, equals(olderVersion), versionsOfNodes("hand")...)
	l.waitForPending(t, "hand")
	updateByHand(t, shoot)
	shoot.eventually(t, 5*time.Minute, equals(newerVersion), versionsOfNodes("hand")...)
	l.waitForPending(t, "")
	web.stop(t, shoot).allAnswered(t, "web server, in an upgrade in place")
	if after := kept(t, shoot, "/machine/id", "/pod/id"); after != before {
		t.Errorf("nodes and data were\n%s and are\n%s", before, after)
	}

	shoot = l.shoot(t, "inplace") // A kubeconfig is good for an hour.
	before = kept(t, shoot, "/machine/id")
	l.rotateInPlace(t, shoot)
	if after := kept(t, l.shoot(t, "inplace"), "/machine/id"); after != before {
		t.Errorf("nodes and data were\n%s and are\n%s", before, after)
	}
	l.deleteShoot(t, "inplace")
}

// rotateInPlace rotates all credentials. The rotation is prepared only when the node that is updated by hand has its
// new certificate too; without that its kubelet would be locked out at the end.
func (l *landscape) rotateInPlace(t *testing.T, shoot kubectl) {
	t.Helper()
	l.operate(t, "inplace", "rotate-credentials-start")
	l.waitForPhase(t, "inplace", "certificateAuthorities", "WaitingForWorkersRollout", 20*time.Minute)
	l.waitForPending(t, "hand")
	updateByHand(t, shoot)
	l.waitForPhase(t, "inplace", "certificateAuthorities", "Prepared", 6*time.Minute)
	l.waitForPhase(t, "inplace", "serviceAccountKey", "Prepared", time.Minute)
	between := l.shoot(t, "inplace")
	l.operate(t, "inplace", "rotate-credentials-complete")
	l.waitForPhase(t, "inplace", "certificateAuthorities", "Completed", 8*time.Minute)
	between.eventually(t, 3*time.Minute, equals("True True True"), "get", "nodes", "-o",
		`jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`)
	between.eventually(t, 3*time.Minute, contains("successfully rolled out"), "rollout", "status",
		"daemonset/keeper", "--watch=false")
}

// updateByHand chooses the nodes of pool hand, as owners of shoots do.
func updateByHand(t *testing.T, shoot kubectl) {
	t.Helper()
	const candidates = "worker.gardener.cloud/pool=hand,node.machine.sapcloud.io/candidate-for-update=true"
	shoot.eventually(t, 2*time.Minute, contains("node/"), "get", "nodes", "-l", candidates, "-o", "name")
	shoot.run(t, "label", "nodes", "-l", candidates, "node.machine.sapcloud.io/selected-for-update=true")
}

// waitForPending waits until a pool, or none, is said to wait for its owner.
func (l *landscape) waitForPending(t *testing.T, pool string) {
	t.Helper()
	const pending = "jsonpath={.status.inPlaceUpdates.pendingWorkerUpdates.manualInPlaceUpdate[*]}"
	l.gardenKubectl().eventually(t, 5*time.Minute, equals(pool), "-n", "garden-demo", "get", "shoot", "inplace", "-o",
		pending)
}

// kept are the nodes, by name and UID, that are schedulable again, and what their keepers have written to files.
func kept(t *testing.T, shoot kubectl, files ...string) string {
	t.Helper()
	const nodes = `go-template={{range .items}}{{.metadata.name}} {{.metadata.uid}} ` +
		`{{or .spec.unschedulable false}}{{"\n"}}{{end}}`
	shoot.eventually(t, 2*time.Minute, func(out string) error {
		if strings.Contains(out, "true") {
			return fmt.Errorf("nodes are cordoned: %s", out)
		}
		return nil
	}, "get", "nodes", "-o", nodes)
	told := shoot.run(t, "get", "nodes", "--sort-by=.metadata.name", "-o", nodes)
	shoot.run(t, "rollout", "status", "daemonset/keeper", "--timeout=3m")
	const pods = `go-template={{range .items}}{{.spec.nodeName}} {{.metadata.name}}{{"\n"}}{{end}}`
	for line := range strings.Lines(shoot.run(t, "get", "pods", "-l", "app=keeper", "--sort-by=.spec.nodeName", "-o",
		pods)) {
		node, pod, _ := strings.Cut(strings.TrimSpace(line), " ")
		if pod == "" {
			continue
		}
		arguments := append([]string{"exec", pod, "--", "cat"}, files...)
		told += node + " " + strings.Join(strings.Fields(shoot.run(t, arguments...)), " ") + "\n"
	}
	return told
}
