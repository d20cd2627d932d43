package landscape

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// replicasOfTheGarden are those of its control plane in a runtime cluster with three nodes or more.
var replicasOfTheGarden = map[string]int32{
	"etcd-main": 3, "etcd-events": 3, "kube-apiserver": 2, "kube-controller-manager": 2,
}

// With three zones the garden outlasts the loss of one, and a drain takes one pod of a part at a time. Before, there is
// one pod of each, and no budget that would keep its node from being drained.
func TestTheGardenOutlastsAZone(t *testing.T) {
	for nodes, several := range map[int]bool{1: false, 2: false, 3: true, 5: true} {
		c, manager := emptyGarden(t)
		if err := deployGardenParts(t.Context(), c, manager, nodes); err != nil {
			t.Fatal(err)
		}
		all := workloadsIn(t, c)
		if len(all) != len(replicasOfTheGarden) {
			t.Errorf("%d nodes: the garden has %d workloads", nodes, len(all))
		}
		budgets := &policyv1.PodDisruptionBudgetList{}
		if err := c.List(t.Context(), budgets, client.InNamespace(gardenNS)); err != nil {
			t.Fatal(err)
		}
		for name, replicas := range replicasOfTheGarden {
			if !several {
				replicas = 1
			}
			if all[name].replicas != replicas {
				t.Errorf("%d nodes: %s has %d replicas, want %d", nodes, name, all[name].replicas, replicas)
			}
			inZones := slices.ContainsFunc(all[name].pod.TopologySpreadConstraints,
				func(c corev1.TopologySpreadConstraint) bool {
					return c.TopologyKey == corev1.LabelTopologyZone && c.WhenUnsatisfiable == corev1.DoNotSchedule
				})
			hasBudget := slices.ContainsFunc(budgets.Items,
				func(b policyv1.PodDisruptionBudget) bool { return b.Name == name })
			if inZones != several || hasBudget != several {
				t.Errorf("%d nodes: %s is spread over zones: %v, has a budget: %v", nodes, name, inZones, hasBudget)
			}
		}
	}
}

// The seed of a landscape outlasts the loss of a zone with its garden.
func TestGardenletsOfTheLandscape(t *testing.T) {
	for nodes, want := range map[int]int64{1: 1, 2: 1, 3: 2, 5: 2} {
		if got := gardenletReplicas(nodes); got != want {
			t.Errorf("%d nodes: %d gardenlets, want %d", nodes, got, want)
		}
	}
}

// The garden's etcd grows in place: the single member goes on while others join it, as it is ready. It never shrinks.
func TestTheGardensEtcdGrows(t *testing.T) {
	c, manager := emptyGarden(t)
	if err := deployGardenParts(t.Context(), c, manager, 1); err != nil {
		t.Fatal(err)
	}
	etcds := &appsv1.StatefulSetList{}
	if err := c.List(t.Context(), etcds, client.InNamespace(gardenNS)); err != nil {
		t.Fatal(err)
	}
	for i := range etcds.Items {
		set := &etcds.Items[i]
		set.Status = appsv1.StatefulSetStatus{
			ObservedGeneration: set.Generation, Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1,
		}
		if err := c.Status().Update(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	}
	volume := storeArguments(t, c)
	if err := deployGardenParts(t.Context(), c, manager, 3); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etcd-main", "etcd-events"} {
		grown := workloadsIn(t, c)[name]
		if grown.replicas != 3 || slices.Contains(grown.pod.Containers[0].Args, "--single-member") {
			t.Errorf("%s has %d replicas with %q", name, grown.replicas, grown.pod.Containers[0].Args)
		}
	}
	if after := storeArguments(t, c); len(after) == 0 || !slices.Equal(after, volume) {
		t.Errorf("backups went to %q, and go to %q", volume, after)
	}
	err := deployGardenParts(t.Context(), c, manager, 1)
	if err == nil || !strings.Contains(err.Error(), "cannot have a single one again") {
		t.Errorf("shrinking: got %v", err)
	}
}

// storeArguments are those by which the garden's etcd is backed up.
func storeArguments(t *testing.T, c client.Client) []string {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(workloadsIn(t, c)["etcd-main"].pod.Containers[0].Args),
		func(argument string) bool { return !strings.HasPrefix(argument, "--store-") })
}
