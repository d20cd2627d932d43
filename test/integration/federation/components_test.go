package federation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

const teamKind = `
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: teams}
spec:
  target: {apiVersion: apps/v1, kind: Deployment}
  customizations:
    componentResource:
      luaScript: |
        function GetComponents(obj)
          if obj.metadata.labels == nil or obj.metadata.labels.team == nil then
            return {}
          end
          local one = {resourceRequest = {cpu = "1"}}
          local two = {resourceRequest = {cpu = "2"}}
          return {
            {name = "leader", replicas = 1, replicaRequirements = one},
            {name = "worker", replicas = obj.spec.replicas, replicaRequirements = two},
          }
        end
`

const teamPolicy = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: teams}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    clusterAffinity: {clusterNames: [wide, high]}
    spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}
`

// A team of a leader (1 CPU) and three workers (2 CPUs each) needs 7 CPUs in one cluster. One cluster has room for two
// teams, the other for one; the fourth team waits and says why.
func TestComponentsAreOneUnit(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	rules := parse(t, teamKind)[0]
	apply(t, w.fleet, "", rules)
	t.Cleanup(func() { _ = w.fleet.Delete(ctx, rules) })
	for name, size := range map[string][2]int{"wide": {4, 2}, "high": {2, 8}} {
		server := newSmallMember(size[0], size[1])
		t.Cleanup(server.Close)
		w.joinSimulated(t, name, server.Server)
	}
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, teamPolicy)...)
	for i, want := range []string{"high", "high", "wide", ""} {
		name := fmt.Sprintf("team-%d", i)
		team := oneCore(namespace, name)
		team.Labels, team.Spec.Replicas = map[string]string{"team": name}, new(int32(3))
		if err := w.fleet.Create(ctx, team); err != nil {
			t.Fatal(err)
		}
		w.teamIsIn(t, namespace, name, want)
	}
}

// teamIsIn waits until a team is placed in the cluster as a whole, or until it says that no cluster has room for it.
func (w *world) teamIsIn(t *testing.T, namespace, name, cluster string) {
	t.Helper()
	all := []workv1alpha2.TargetComponent{{Name: "leader", Replicas: 1}, {Name: "worker", Replicas: 3}}
	eventually(t, fmt.Sprintf("%s is in %q", name, cluster), func() error {
		b := &workv1alpha2.ResourceBinding{}
		if err := w.fleet.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name + "-deployment"},
			b); err != nil {
			return err
		}
		scheduled := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.ConditionScheduled)
		switch clusters := b.Spec.Clusters; {
		case len(clusters) == 1 && clusters[0].Name == cluster && slices.Equal(clusters[0].Components, all):
			return nil
		case len(clusters) == 0 && cluster == "" && scheduled != nil &&
			strings.Contains(scheduled.Message, "room for 0 of 1 sets of components"):
			return nil
		default:
			return fmt.Errorf("clusters %+v, %+v", clusters, scheduled)
		}
	})
}
