//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// givesBackSoon has the autoscaler of member2 remove machines that are not used without waiting for long.
	givesBackSoon = `[
{"op": "add", "path": "/spec/kubernetes/clusterAutoscaler", "value": {"scanInterval": "2s", "scaleDownDelayAfterAdd": "0s", "scaleDownUnneededTime": "5s"}}]`
	givesBackAsEver = `[{"op": "remove", "path": "/spec/kubernetes/clusterAutoscaler"}]`
	// poolOfShoot prints the bounds of the first pool, and what the fleet remembers of it.
	poolOfShoot = `jsonpath={.spec.provider.workers[0].minimum} {.spec.provider.workers[0].maximum}{.metadata.annotations.federation\.trellis\.garden/grown-pools}`
)

// A Deployment that finds no room in its member brings a second machine to the member's pool, as far as the project, the operator of
// the fleet and the policy allow it. When it is gone, so is the machine, and the pool is as it was.
func TestFleetGrows(t *testing.T) {
	l := open(t)
	garden, fleet, m2 := l.gardenKubectl(), l.shoot(t, "fleet"), l.shoot(t, "member2")
	l.waitForShoot(t, "member2", "", 5*time.Minute)
	manifest := growingFleet(t, m2)
	t.Cleanup(func() {
		ctx := context.Background()
		_, _ = fleet.try(ctx, manifest, "delete", "--ignore-not-found", "--timeout=4m", "-f", "-")
		_, _ = garden.try(ctx, "", "-n", "garden-demo", "annotate", "shoot", "fleet", "federation.trellis.garden/growth-")
		_, _ = garden.try(ctx, "", "-n", "garden-demo", "patch", "shoot", "member2", "--type=json", "-p", givesBackAsEver)
	})
	garden.run(t, "-n", "garden-demo", "patch", "shoot", "member2", "--type=json", "-p", givesBackSoon)
	garden.run(t, "-n", "garden-demo", "annotate", "shoot", "fleet", "federation.trellis.garden/growth=pools")

	fleet.apply(t, manifest)
	m2.eventually(t, 6*time.Minute, equals("2"), "get", "deploy", "grower", "-o", "jsonpath={.status.readyReplicas}")
	m2.eventually(t, time.Second, lines(2), "get", "nodes", "-o", "name")
	garden.eventually(t, time.Second, contains("2 2", "minimum"), "-n", "garden-demo", "get", "shoot", "member2", "-o", poolOfShoot)
	fleet.eventually(t, time.Minute, equals("1 NothingWaits"), "get", "fleetgrowth", "standard",
		"-o", `jsonpath={.status.machines} {.status.conditions[?(@.type=="Satisfied")].reason}`)

	fleet.run(t, "delete", "deploy", "grower")
	m2.eventually(t, 6*time.Minute, lines(1), "get", "nodes", "-o", "name")
	garden.eventually(t, 2*time.Minute, equals("1 1"), "-n", "garden-demo", "get", "shoot", "member2", "-o", poolOfShoot)
}

// growingFleet is a Deployment of two pods of which a node of the member takes one, and what allows the fleet to grow for it.
func growingFleet(t *testing.T, member kubectl) string {
	t.Helper()
	allocatable := strings.Fields(member.run(t, "get", "nodes", "-o", "jsonpath={.items[0].status.allocatable.cpu} {.items[0].status.allocatable.memory}"))
	cpu, err := resource.ParseQuantity(allocatable[0])
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`
apiVersion: fleet.trellis.garden/v1alpha1
kind: FleetGrowth
metadata: {name: standard}
spec:
  machines:
  - {type: small, capacity: {cpu: %dm, memory: %s, pods: "50"}, costPerHour: "0.10"}
  limits: {machines: 1}
  pools:
  - {clusterSelector: {matchLabels: {failuredomain.kubernetes.io/region: dc2}}, maximum: 2}
  giveBack: {idleSeconds: 30}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: grower, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: grower}}
  template:
    metadata: {labels: {app: grower}}
    spec:
      containers: [{name: nginx, image: nginx, resources: {requests: {cpu: %dm}}}]
      terminationGracePeriodSeconds: 1
---
`, cpu.MilliValue()*8/10, allocatable[1], cpu.MilliValue()*6/10) + fleetPolicy("grower", `
  placement:
    clusterAffinity: {clusterNames: [member2]}
    growth: standard
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}
`)
}
