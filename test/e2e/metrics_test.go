//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"
)

// busyManifest is a Deployment over both members whose pods are busy until they have a file, and what scales it by
// their load.
const busyManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: busy, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: busy}}
  template:
    metadata: {labels: {app: busy}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: busy
        image: nginx
        command: [sh, -c, "while [ ! -e /tmp/idle ]; do :; done; sleep 3600"]
        resources: {requests: {cpu: 20m}, limits: {cpu: 40m}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: busy, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: busy}]
  placement:
    clusterAffinity: {clusterNames: [member1, member2]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
        - {targetCluster: {clusterNames: [member1]}, weight: 1}
        - {targetCluster: {clusterNames: [member2]}, weight: 1}
---
apiVersion: autoscaling.karmada.io/v1alpha1
kind: FederatedHPA
metadata: {name: busy, namespace: default}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: busy}
  minReplicas: 2
  maxReplicas: 4
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]
  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}
`

// A shoot tells what its nodes and pods use, and its nodes offer what is left of the machine type's 2 GiB of memory.
func TestMetrics(t *testing.T) {
	m1 := open(t).shoot(t, "member1")
	m1.eventually(t, time.Minute, contains("924Mi"), "get", "nodes", "-o",
		"jsonpath={.items[*].status.allocatable.memory}")
	m1.eventually(t, 2*time.Minute, contains("shoot--demo--member1", "%"), "top", "nodes", "--no-headers")
	m1.eventually(t, time.Minute, contains("metrics-server", "Mi"), "-n", "kube-system", "top", "pods", "--no-headers")
}

// What pods in both members use has a Deployment of the fleet grow, and shrink again when they are idle. As long as
// others keep the cores busy, the pods may use less than they want: it grows when that is over at the latest.
func federatedHPA(t *testing.T) {
	const replicas = "jsonpath={.spec.replicas}"
	l := open(t)
	fleet, members := l.fleet(t), []kubectl{l.shoot(t, "member1"), l.shoot(t, "member2")}
	l.removeAfterwards(t, fleet, busyManifest, "deploy/busy", members...)
	fleet.apply(t, busyManifest)
	for _, member := range members {
		member.eventually(t, time.Minute, equals("1"), "get", "deploy", "busy", "-o", replicas)
	}

	fleet.eventually(t, 5*time.Minute, equals("4"), "get", "deploy", "busy", "-o", replicas)
	for _, member := range members {
		member.eventually(t, time.Minute, equals("2"), "get", "deploy", "busy", "-o",
			"jsonpath={.status.readyReplicas}")
		for _, pod := range strings.Fields(member.run(t, "get", "pods", "-l", "app=busy", "-o", "name")) {
			member.run(t, "exec", pod, "--", "touch", "/tmp/idle")
		}
	}
	fleet.eventually(t, 3*time.Minute, equals("2"), "get", "deploy", "busy", "-o", replicas)
	for _, member := range members {
		member.eventually(t, time.Minute, equals("1"), "get", "deploy", "busy", "-o", replicas)
	}
}
