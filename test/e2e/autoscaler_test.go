//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"
)

const (
	// mayGrow lets the pool of a shoot have a second machine, and lets it go again soon.
	mayGrow = `[
{"op": "replace", "path": "/spec/provider/workers/0/maximum", "value": 2},
{"op": "add", "path": "/spec/kubernetes/clusterAutoscaler", "value": {
  "scanInterval": "2s", "scaleDownDelayAfterAdd": "0s", "scaleDownUnneededTime": "2m"}},
{"op": "add", "path": "/spec/provider/workers/0/clusterAutoscaler", "value": {"scaleDownUnneededTime": "5s"}}]`
	// mayNotGrow takes that back.
	mayNotGrow = `[
{"op": "replace", "path": "/spec/provider/workers/0/maximum", "value": 1},
{"op": "remove", "path": "/spec/kubernetes/clusterAutoscaler"},
{"op": "remove", "path": "/spec/provider/workers/0/clusterAutoscaler"}]`
	// crowd are two pods that do not share a node.
	crowd = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: crowd}
spec:
  replicas: 2
  selector: {matchLabels: {app: crowd}}
  template:
    metadata: {labels: {app: crowd}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: crowd, image: nginx}]
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: crowd}}}
`
)

// A pod that finds no room brings a second node, which a reconciliation leaves alone, and which goes when the pod is
// gone. A pool that may not grow any more needs no autoscaler.
func clusterAutoscaler(t *testing.T) {
	const namespace = "shoot--demo--member2"
	l := open(t)
	garden, seed := l.gardenKubectl(), l.runtimeKubectl()
	l.waitForShoot(t, "member2", "", 5*time.Minute)
	member := l.shoot(t, "member2")
	fixed := false
	t.Cleanup(func() {
		_, _ = member.try(context.Background(), "", "delete", "deployment", "crowd", "--ignore-not-found")
		if !fixed {
			_, _ = garden.try(context.Background(), "", "-n", "garden-demo", "patch", "shoot", "member2", "--type=json",
				"-p", mayNotGrow)
		}
	})

	garden.run(t, "-n", "garden-demo", "patch", "shoot", "member2", "--type=json", "-p", mayGrow)
	l.waitForShoot(t, "member2", "Reconcile", 5*time.Minute)
	seed.eventually(t, time.Minute, equals("1"), "-n", namespace, "get", "deployment", "cluster-autoscaler", "-o",
		"jsonpath={.status.readyReplicas}")

	member.apply(t, crowd)
	member.eventually(t, 5*time.Minute, equals("2"), "get", "deployment", "crowd", "-o",
		"jsonpath={.status.readyReplicas}")
	member.eventually(t, time.Minute, lines(2), "get", "nodes", "-o", "name")
	member.eventually(t, time.Minute, contains("1->2 (max: 2)"), "get", "events", "--field-selector",
		"reason=TriggeredScaleUp", "-o", "jsonpath={.items[*].message}")
	l.operate(t, "member2", "reconcile")
	garden.eventually(t, time.Minute, equals(""), "-n", "garden-demo", "get", "shoot", "member2", "-o",
		`jsonpath={.metadata.annotations.gardener\.cloud/operation}`)
	l.waitForShoot(t, "member2", "Reconcile", 5*time.Minute)
	member.eventually(t, time.Second, equals("2"), "get", "deployment", "crowd", "-o",
		"jsonpath={.status.readyReplicas}")

	member.run(t, "delete", "deployment", "crowd")
	seed.eventually(t, 5*time.Minute, lines(1), "-n", namespace, "get", "machines", "-o", "name")
	member.eventually(t, 2*time.Minute, lines(1), "get", "nodes", "-o", "name")
	member.eventually(t, time.Minute, contains(" Ready "), "get", "nodes", "--no-headers")
	seed.eventually(t, time.Minute, equals("1"), "-n", namespace, "get", "machinedeployments", "-o",
		"jsonpath={.items[*].spec.replicas}")

	garden.run(t, "-n", "garden-demo", "patch", "shoot", "member2", "--type=json", "-p", mayNotGrow)
	fixed = true
	l.waitForShoot(t, "member2", "Reconcile", 5*time.Minute)
	seed.eventually(t, time.Second, equals(""), "-n", namespace, "get", "deployment", "cluster-autoscaler",
		"--ignore-not-found", "-o", "name")
	member.eventually(t, time.Minute, equals(""), "get", "clusterrole", "system:cluster-autoscaler",
		"--ignore-not-found", "-o", "name")
}
