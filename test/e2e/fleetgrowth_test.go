//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

const (
	// givesBackSoon has the autoscaler of member2 remove machines that are not used without waiting for long.
	givesBackSoon = `[
{"op": "add", "path": "/spec/kubernetes/clusterAutoscaler", "value": {"scanInterval": "2s", "scaleDownDelayAfterAdd": "0s", "scaleDownUnneededTime": "5s"}}]`
	givesBackAsEver = `[{"op": "remove", "path": "/spec/kubernetes/clusterAutoscaler"}]`
)

// A Deployment that finds no room in its member brings a second machine to the member's pool, and one that fits no
// member brings a shoot, as far as the project, the operator of the fleet and the policies allow it. When they are
// gone, so are the machine and the shoot, and the pool is as it was.
func fleetGrows(t *testing.T) {
	l := open(t)
	garden, fleet, m2 := l.gardenKubectl(), l.fleet(t), l.shoot(t, "member2")
	l.waitForShoot(t, "member2", "", 5*time.Minute)
	// Machines that a test before has given back are no room any more, for the fleet as well.
	fleet.eventually(t, 2*time.Minute, equals("1 1"), "get", "cluster", "member2", "-o",
		"jsonpath={.status.nodeSummary.totalNum} {.status.nodeSummary.readyNum}")
	manifest := growingFleet(t, l, m2)
	t.Cleanup(func() {
		ctx := context.Background()
		_, _ = fleet.try(ctx, manifest, "delete", "--ignore-not-found", "--timeout=4m", "-f", "-")
		_, _ = garden.try(ctx, "", "-n", "garden-demo", "annotate", "shoot", "fleet",
			"federation.trellis.garden/growth-", "federation.trellis.garden/growth-credentials-")
		_, _ = garden.try(ctx, "", "-n", "garden-demo", "patch", "shoot", "member2", "--type=json", "-p",
			givesBackAsEver)
	})
	l.explainGrowth(t, fleet, m2) // Before anything is removed.
	garden.run(t, "-n", "garden-demo", "patch", "shoot", "member2", "--type=json", "-p", givesBackSoon)
	garden.run(t, "-n", "garden-demo", "annotate", "shoot", "fleet", "federation.trellis.garden/growth=pools,shoots",
		"federation.trellis.garden/growth-credentials=local")

	fleet.apply(t, manifest)
	m2.eventually(t, 6*time.Minute, equals("2"), "get", "deploy", "grower", "-o", "jsonpath={.status.readyReplicas}")
	m2.eventually(t, time.Second, lines(2), "get", "nodes", "-o", "name")
	garden.eventually(t, time.Second, contains(` 2{"pool"`), "-n", "garden-demo", "get", "shoot", "member2", "-o",
		poolOfShoot)
	fleet.eventually(t, 6*time.Minute, equals("1"), "get", "deploy", "pioneer", "-o",
		"jsonpath={.status.readyReplicas}")
	l.shoot(t, "burst-1").eventually(t, time.Second, equals("1"), "get", "deploy", "pioneer", "-o",
		"jsonpath={.status.readyReplicas}")
	fleet.eventually(t, time.Minute, equals("2 machines 1 shoots NothingWaits"), "get", "fleetgrowth", "standard",
		"-o",
		`jsonpath={.status.machines} machines {.status.shoots} shoots {.status.conditions[?(@.type=="Satisfied")].reason}`)

	fleet.run(t, "delete", "deploy", "grower", "pioneer")
	fleet.eventually(t, time.Minute, contains("burst-1", "since"), "get", "fleetgrowth", "standard", "-o",
		"jsonpath={.status.unused}")
	m2.eventually(t, 6*time.Minute, lines(1), "get", "nodes", "-o", "name")
	garden.eventually(t, 2*time.Minute, equals("1 1"), "-n", "garden-demo", "get", "shoot", "member2", "-o",
		poolOfShoot)
	garden.eventually(t, 6*time.Minute, equals(""), "-n", "garden-demo", "get", "shoot", "burst-1",
		"--ignore-not-found", "-o", "jsonpath={.status.lastOperation} {.status.lastErrors}")
	fleet.eventually(t, time.Minute, equals(""), "get", "cluster", "burst-1", "--ignore-not-found", "-o", "name")
}

// shootTemplate is the spec of member1, with another network of machines.
func shootTemplate(t *testing.T, l *landscape) string {
	t.Helper()
	_, spec, _ := strings.Cut(input(t, l, "shoot-member1.yaml"), "\nspec:\n")
	template, err := yaml.YAMLToJSON([]byte(strings.Replace(spec, "nodes: 10.180.1.0/24", "nodes: 10.180.8.0/24", 1)))
	if err != nil {
		t.Fatal(err)
	}
	return string(template)
}

// growingFleet are a Deployment of two pods of which a node of the member takes one, another one for members that are
// not there yet, and what allows the fleet to grow for them.
func growingFleet(t *testing.T, l *landscape, member kubectl) string {
	t.Helper()
	allocatable := strings.Fields(member.run(t, "get", "nodes", "-o",
		"jsonpath={.items[0].status.allocatable.cpu} {.items[0].status.allocatable.memory}"))
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
  limits: {machines: 2}
  coolDownSeconds: 5
  pools:
  - {clusterSelector: {matchLabels: {failuredomain.kubernetes.io/region: dc2}}, maximum: 2}
  shoots:
    maximum: 1
    namePrefix: burst
    template:
      labels: {failuredomain.kubernetes.io/region: dc3}
      spec: %s
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
`, cpu.MilliValue()*8/10, allocatable[1], shootTemplate(t, l), cpu.MilliValue()*6/10) +
		fleetPolicy("grower", grows("{clusterNames: [member2]}")) + "---\n" +
		fleetNginx("pioneer", 1, grows("{labelSelector: {matchLabels: {failuredomain.kubernetes.io/region: dc3}}}"))
}

// grows has the fleet grow for an object, among the clusters of an affinity.
func grows(affinity string) string {
	return fmt.Sprintf(`
  placement:
    clusterAffinity: %s
    growth: standard
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}
`, affinity)
}
