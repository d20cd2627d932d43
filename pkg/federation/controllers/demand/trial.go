package demand

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/growth/shoots"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// waits tells whether a binding has no place, or not enough of it.
func waits(b bindings.Binding) bool {
	scheduled := meta.FindStatusCondition(karmada.Explained(b).Conditions, workv1alpha2.ConditionScheduled)
	if spec := b.BindingSpec(); divides(spec) && placed(spec) >= int64(spec.Replicas) && len(spec.Clusters) > 0 {
		return false // Fewer are wanted than when it was decided.
	}
	return b.GetDeletionTimestamp() == nil && scheduled != nil && scheduled.Status == metav1.ConditionFalse &&
		(scheduled.Reason == workv1alpha2.ReasonUnschedulable || scheduled.Reason == workv1alpha2.ReasonNoClusterFit)
}

// divides tells whether replicas are divided over clusters.
func divides(spec *workv1alpha2.ResourceBindingSpec) bool {
	if spec.Placement == nil || !karmada.IsWorkload(spec) {
		return false
	}
	placement, err := karmada.Placement(spec.Placement)
	return err == nil && placement.Strategy != core.Duplicated
}

func nameOf(b bindings.Binding) string {
	key := client.ObjectKeyFromObject(b)
	if key.Namespace == "" {
		return key.Name
	}
	return key.String()
}

// plenty is more than anything that is placed asks for.
var plenty = core.Resources{
	CPU: math.MaxInt64 / 4, Memory: math.MaxInt64 / 4, Storage: math.MaxInt64 / 4, Pods: math.MaxInt32,
}

// trial decides once more as if there were machines enough.
type trial struct {
	clusters []core.Cluster
	// enlarged are the same clusters with room for everything.
	enlarged core.Snapshot
	// created is what a shoot of the template would be; nil without a template.
	created *core.Cluster
	problem error
}

func newTrial(snapshot core.Snapshot, object *fleetv1alpha1.FleetGrowth) *trial {
	t := &trial{clusters: snapshot.Clusters()}
	enlarged := snapshot.Clusters()
	for i := range enlarged {
		enlarged[i].Room = &core.Room{Free: plenty}
	}
	t.enlarged = core.NewSnapshot(enlarged)
	if object.Spec.Shoots != nil {
		t.created, t.problem = created(object)
	}
	return t
}

// created is a shoot of the template as a member, with as many machines as it takes.
func created(object *fleetv1alpha1.FleetGrowth) (*core.Cluster, error) {
	spec, err := shoots.Spec(object.Spec.Shoots)
	if err != nil {
		return nil, err
	}
	machines := map[string]core.Resources{}
	for _, m := range shoots.Machines(object) {
		machines[m.Type] = m.Capacity
	}
	c := &core.Cluster{
		Name: object.Spec.Shoots.NamePrefix + "-0", Labels: labels.Set{fleetv1alpha1.GrownForLabel: object.Name},
		Provider: spec.Provider.Type, Region: spec.Region,
		Room: &core.Room{Free: plenty},
	}
	for key, value := range object.Spec.Shoots.Template.Labels {
		c.Labels[key] = value
	}
	for i := range spec.Provider.Workers {
		w := &spec.Provider.Workers[i]
		c.Zones = append(c.Zones, w.Zones...)
		node := shoots.Pool(w).Node
		node.Count, node.Free = math.MaxInt32, machines[w.Machine.Type]
		c.Room.Nodes = append(c.Room.Nodes, node)
	}
	slices.Sort(c.Zones)
	c.Zones = slices.Compact(c.Zones)
	return c, nil
}

// item says what waits, and what would help it.
func (t *trial) item(b bindings.Binding) fleetv1alpha1.GrowthDemandItem {
	spec := b.BindingSpec()
	item := fleetv1alpha1.GrowthDemandItem{Binding: nameOf(b), Replicas: missing(spec), MaxClusters: maxClusters(spec)}
	if needs := spec.ReplicaRequirements; needs != nil {
		item.Request, item.NodeClaim = needs.ResourceRequest.DeepCopy(), needs.NodeClaim.DeepCopy()
	}
	if karmada.Unit(spec) != nil {
		item.Components = componentsOf(spec)
	}
	translated, err := karmada.Translate(b)
	if err != nil {
		item.Useless = err.Error()
		return item
	}
	decision := core.Decide(t.enlarged, translated)
	if decision.Failure == nil {
		if item.Clusters, err = candidates(decision, karmada.ReportOf(b)); err != nil {
			item.Useless = err.Error()
			return item
		}
	}
	item.NewShoot = t.createdHelps(spec, translated)
	if len(item.Clusters) == 0 && !item.NewShoot {
		item.Useless = t.useless(decision)
	}
	return item
}

// componentsOf says what each component of a unit asks for.
func componentsOf(spec *workv1alpha2.ResourceBindingSpec) []fleetv1alpha1.GrowthDemandComponent {
	var result []fleetv1alpha1.GrowthDemandComponent
	for _, c := range spec.Components {
		component := fleetv1alpha1.GrowthDemandComponent{Name: c.Name, Replicas: c.Replicas}
		if needs := c.ReplicaRequirements; needs != nil {
			component.Request, component.NodeClaim = needs.ResourceRequest.DeepCopy(), needs.NodeClaim.DeepCopy()
		}
		result = append(result, component)
	}
	return result
}

func (t *trial) useless(decision core.Decision) string {
	message := "no member may take it"
	if decision.Failure != nil {
		message = decision.Failure.Message
	}
	if t.problem != nil {
		return fmt.Sprintf("also with more machines: %s; no shoot is created: %v", message, t.problem)
	}
	return "also with more machines, or a shoot of the template if there is one: " + message
}

// createdHelps tells whether the object would be placed if there were a shoot of the template. One that has to be where
// its group is, is not.
func (t *trial) createdHelps(spec *workv1alpha2.ResourceBindingSpec, b core.Binding) bool {
	if t.created == nil || spec.WorkloadAffinityGroups != nil && spec.WorkloadAffinityGroups.AffinityGroup != "" {
		return false
	}
	c := *t.created
	c.APIs = core.NewAPIs(b.Kind)
	decision := core.Decide(core.NewSnapshot(append(slices.Clone(t.clusters), c)), b)
	return decision.Failure == nil &&
		slices.ContainsFunc(decision.Targets, func(target core.Target) bool { return target.Cluster == c.Name })
}

// maxListed bounds the list of clusters of an item.
const maxListed = 64

// candidates are the clusters that pass all checks, sorted. Those that the decision left out for the sake of groups of
// workloads are none.
func candidates(decision core.Decision, made *workv1alpha2.PlacementDecision) ([]string, error) {
	var ranked []workv1alpha2.RankedCluster
	all := made == nil || made.Omitted > 0
	if !all {
		var err error
		if ranked, err = made.Ranking.Clusters(); err != nil {
			return nil, fmt.Errorf("status.decision.ranking: %w", err)
		}
	}
	var names []string
	for _, c := range decision.Candidates() {
		is := func(r workv1alpha2.RankedCluster) bool { return r.Name == c.Cluster }
		if len(names) < maxListed && (all || slices.ContainsFunc(ranked, is)) {
			names = append(names, c.Cluster)
		}
	}
	slices.Sort(names)
	return names, nil
}

// missing is the number of replicas that have no place; an object without replicas counts as one.
func missing(spec *workv1alpha2.ResourceBindingSpec) int32 {
	return int32(max(1, int64(spec.Replicas)-placed(spec)))
}

// placed is the number of replicas that have a place.
func placed(spec *workv1alpha2.ResourceBindingSpec) int64 {
	var sum int64
	for _, c := range spec.Clusters {
		sum += int64(c.Replicas)
	}
	return sum
}

// maxClusters is the most that a spread constraint allows.
func maxClusters(spec *workv1alpha2.ResourceBindingSpec) int32 {
	placement, err := karmada.Placement(spec.Placement)
	if err != nil {
		return 0
	}
	for _, c := range placement.Spread {
		if c.Field == core.FieldCluster && c.Max != nil {
			return int32(min(*c.Max, math.MaxInt32))
		}
	}
	return 0
}
