// Package karmada translates the policies, bindings and clusters of the Karmada dialect into the model of
// pkg/federation/core, and decisions back.
package karmada

import (
	"crypto/sha256"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// placementPath is where placements lie in policies; messages for users name fields by it.
const placementPath = "spec.placement"

// Translator gives what decisions look at. It is not safe for concurrent use.
type Translator struct {
	// Began is when members began to be asked how they are, FirstAnswer how long decisions may wait for the answer.
	Began       time.Time
	FirstAnswer time.Duration
	// apis are shared between the clusters that serve the same.
	apis map[[sha256.Size]byte]*core.APIs
}

// Cluster translates one cluster.
func (t *Translator) Cluster(c *clusterv1alpha1.Cluster) core.Cluster {
	result := Identity(c)
	result.Taints = settledTaints(c)
	if since, unknown := t.unknownSince(c); unknown {
		result.AwaitedUntil, result.Taints = since.Add(t.FirstAnswer), peoplesTaints(c.Spec.Taints)
	}
	result.Deleting = c.DeletionTimestamp != nil
	result.APIs = t.sharedAPIs(c.Status.APIEnablements)
	result.Room = Room(c.Status.ResourceSummary)
	return result
}

// mostAPISets bounds what is remembered of clusters that have changed since.
const mostAPISets = 1000

func (t *Translator) sharedAPIs(enablements []clusterv1alpha1.APIEnablement) *core.APIs {
	h := sha256.New()
	for _, e := range enablements {
		fmt.Fprintln(h, e.GroupVersion)
		for _, r := range e.Resources {
			fmt.Fprintln(h, "", r.Kind)
		}
	}
	key := [sha256.Size]byte(h.Sum(nil))
	if known, found := t.apis[key]; found {
		return known
	}
	if t.apis == nil || len(t.apis) >= mostAPISets {
		t.apis = map[[sha256.Size]byte]*core.APIs{}
	}
	t.apis[key] = apis(enablements)
	return t.apis[key]
}

// Identity gives the part that affinities match.
func Identity(c *clusterv1alpha1.Cluster) core.Cluster {
	return core.Cluster{
		Name: c.Name, Labels: c.Labels, Provider: c.Spec.Provider, Region: c.Spec.Region, Zones: zones(c.Spec),
	}
}

// zones adds the older single zone to the list.
func zones(spec clusterv1alpha1.ClusterSpec) []string {
	if len(spec.Zones) == 0 && spec.Zone != "" {
		return []string{spec.Zone}
	}
	return spec.Zones
}

func apis(enablements []clusterv1alpha1.APIEnablement) *core.APIs {
	var kinds []schema.GroupVersionKind
	for _, e := range enablements {
		gv, err := schema.ParseGroupVersion(e.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range e.Resources {
			kinds = append(kinds, gv.WithKind(r.Kind))
		}
	}
	return core.NewAPIs(kinds...)
}

// Room gives what is known to be free; nil of nothing.
func Room(summary *clusterv1alpha1.ResourceSummary) *core.Room {
	if summary == nil {
		return nil
	}
	taken := Resources(summary.Allocated).Plus(Resources(summary.Allocating))
	return &core.Room{
		Free: Resources(summary.Allocatable).Minus(taken), Pending: Resources(summary.Allocating),
		Nodes: nodes(summary.NodeClasses),
	}
}

func nodes(classes []clusterv1alpha1.NodeClass) []core.Node {
	var result []core.Node
	for _, class := range classes {
		result = append(result, core.Node{
			Count: int64(class.Count), Free: Resources(class.Free), Labels: class.Labels, Taints: class.Taints,
		})
	}
	return result
}

// Resources gives CPU in millicores and everything else in its base unit.
func Resources(list corev1.ResourceList) core.Resources {
	var result core.Resources
	for name, quantity := range list {
		switch name {
		case corev1.ResourceCPU:
			result.CPU = quantity.MilliValue()
		case corev1.ResourceMemory:
			result.Memory = quantity.Value()
		case corev1.ResourceEphemeralStorage:
			result.Storage = quantity.Value()
		case corev1.ResourcePods:
			result.Pods = quantity.Value()
		default:
			if result.Other == nil {
				result.Other = map[string]int64{}
			}
			result.Other[string(name)] = quantity.Value()
		}
	}
	return result
}

// Binding gives what is to be decided.
func Binding(spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus) (core.Binding, error) {
	placement, err := Placement(spec.Placement)
	if err != nil {
		return core.Binding{}, err
	}
	b := core.Binding{
		Kind:         schema.FromAPIVersionAndKind(spec.Resource.APIVersion, spec.Resource.Kind),
		UID:          string(spec.Resource.UID),
		Workload:     IsWorkload(spec) && len(spec.Components) == 0,
		Replicas:     spec.Replicas,
		Placement:    placement,
		PreviousTerm: status.SchedulerObservedAffinityName,
		Fresh:        Fresh(spec, status),
		BetweenTerms: Returning(spec),
	}
	if b.Fresh {
		b.PreviousTerm = "" // Who asks for a new decision wants the first affinity again, if it can be had.
	}
	if spec.ReplicaRequirements != nil {
		b.Request = Resources(spec.ReplicaRequirements.ResourceRequest)
		b.Nodes = NodeClaim(spec.ReplicaRequirements.NodeClaim)
	}
	unit := Unit(spec)
	if unit != nil {
		b.SetOf(unit)
	}
	for _, c := range spec.Clusters {
		b.Previous = append(b.Previous, previousOf(c, unit != nil))
	}
	b.Evicted = evicted(spec)
	if back := spec.LastFailBack; back != nil && back.AffinityName != "" {
		b.PreviousTerm = back.AffinityName
	}
	return b, nil
}

// NodeClaim gives the restrictions of nodes; nil of nothing.
func NodeClaim(claim *workv1alpha2.NodeClaim) *core.NodeClaim {
	if claim == nil {
		return nil
	}
	return &core.NodeClaim{
		Selector: claim.NodeSelector, Affinity: claim.HardNodeAffinity, Tolerations: claim.Tolerations,
	}
}

// IsWorkload tells whether the object has replicas, or components that have some. Components are never divided: such an
// object goes to the chosen clusters as it is, and if it may have only one, as a unit (see Unit).
func IsWorkload(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Replicas > 0 || spec.ReplicaRequirements != nil || len(spec.Components) > 0
}

// Fresh tells whether someone asked for a decision from scratch since the last one.
func Fresh(spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus) bool {
	return spec.RescheduleTriggeredAt != nil && status.LastScheduledTime != nil &&
		spec.RescheduleTriggeredAt.After(status.LastScheduledTime.Time)
}

// Placement of nil means every cluster, all replicas in each.
func Placement(p *policyv1alpha1.Placement) (core.Placement, error) {
	if p == nil {
		return core.Placement{}, nil
	}
	terms, err := affinityTerms(p)
	if err != nil {
		return core.Placement{}, err
	}
	strategy, err := strategyOf(p.ReplicaScheduling)
	if err != nil {
		return core.Placement{}, err
	}
	weights, err := weights(p.ReplicaScheduling)
	if err != nil {
		return core.Placement{}, err
	}
	limits, err := limits(p.ReplicaScheduling)
	if err != nil {
		return core.Placement{}, err
	}
	return core.Placement{
		Terms: terms, Tolerations: p.ClusterTolerations, Spread: spreadConstraints(p.SpreadConstraints),
		Strategy: strategy, Weights: weights, Limits: limits,
	}, nil
}

func affinityTerms(p *policyv1alpha1.Placement) ([]core.Term, error) {
	if p.ClusterAffinity != nil {
		affinity, err := Affinity(placementPath+".clusterAffinity", p.ClusterAffinity)
		return []core.Term{{Affinity: affinity}}, err
	}
	var terms []core.Term
	for i := range p.ClusterAffinities {
		path := fmt.Sprintf("%s.clusterAffinities[%d]", placementPath, i)
		term := &p.ClusterAffinities[i]
		affinity, err := Affinity(path, &term.ClusterAffinity)
		if err != nil {
			return nil, err
		}
		overflow, err := overflowTiers(path, term.OverflowAffinities)
		if err != nil {
			return nil, err
		}
		terms = append(terms, core.Term{Name: term.AffinityName, Affinity: affinity, Overflow: overflow})
	}
	return terms, nil
}

func overflowTiers(path string, tiers []policyv1alpha1.OverflowAffinity) ([]core.Affinity, error) {
	var result []core.Affinity
	for i := range tiers {
		affinity, err := Affinity(fmt.Sprintf("%s.overflowAffinities[%d]", path, i), &tiers[i].ClusterAffinity)
		if err != nil {
			return nil, err
		}
		result = append(result, affinity)
	}
	return result, nil
}

// Affinity translates one cluster affinity, found at path. Nil matches every cluster.
func Affinity(path string, a *policyv1alpha1.ClusterAffinity) (core.Affinity, error) {
	result := core.Affinity{Path: path}
	if a == nil {
		return result, nil
	}
	result.Names, result.Exclude = a.ClusterNames, a.ExcludeClusters
	if a.LabelSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(a.LabelSelector)
		if err != nil {
			return result, fmt.Errorf("%s.labelSelector: %w", path, err)
		}
		result.Labels = selector
	}
	if a.FieldSelector == nil {
		return result, nil
	}
	for i, e := range a.FieldSelector.MatchExpressions {
		if e.Operator != corev1.NodeSelectorOpIn && e.Operator != corev1.NodeSelectorOpNotIn {
			return result, fmt.Errorf("%s.fieldSelector.matchExpressions[%d].operator: must be In or NotIn, not %q",
				path, i, e.Operator)
		}
		result.Fields = append(result.Fields, core.FieldRequirement{
			Field: core.Field(e.Key), Not: e.Operator == corev1.NodeSelectorOpNotIn, Values: e.Values,
		})
	}
	return result, nil
}

// strategyOf treats an absent strategy as Duplicated and an absent type as Divided, as the published API does.
func strategyOf(s *policyv1alpha1.ReplicaSchedulingStrategy) (core.Strategy, error) {
	switch {
	case s == nil || s.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDuplicated:
		return core.Duplicated, nil
	case s.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated:
		return core.Aggregated, nil
	case s.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceEven:
		return core.Even, nil
	case s.WeightPreference == nil || s.WeightPreference.DynamicWeight == "":
		return core.StaticWeight, nil
	case s.WeightPreference.DynamicWeight == policyv1alpha1.DynamicWeightByAvailableReplicas:
		return core.DynamicWeight, nil
	}
	return 0, fmt.Errorf("%s.replicaScheduling.weightPreference.dynamicWeight: must be AvailableReplicas, not %q",
		placementPath, s.WeightPreference.DynamicWeight)
}

func weights(s *policyv1alpha1.ReplicaSchedulingStrategy) ([]core.Weight, error) {
	if s == nil || s.WeightPreference == nil {
		return nil, nil
	}
	var result []core.Weight
	for i := range s.WeightPreference.StaticWeightList {
		entry := &s.WeightPreference.StaticWeightList[i]
		path := fmt.Sprintf("%s.replicaScheduling.weightPreference.staticWeightList[%d].targetCluster", placementPath,
			i)
		affinity, err := Affinity(path, &entry.TargetCluster)
		if err != nil {
			return nil, err
		}
		result = append(result, core.Weight{Affinity: affinity, Weight: entry.Weight})
	}
	return result, nil
}

func limits(s *policyv1alpha1.ReplicaSchedulingStrategy) ([]core.Limit, error) {
	if s == nil {
		return nil, nil
	}
	var result []core.Limit
	for i := range s.Limits {
		path := fmt.Sprintf("%s.replicaScheduling.limits[%d].targetCluster", placementPath, i)
		affinity, err := Affinity(path, s.Limits[i].TargetCluster)
		if err != nil {
			return nil, err
		}
		limit := core.Limit{Affinity: affinity, Max: s.Limits[i].MaxReplicas}
		if s.Limits[i].MinReplicas != nil {
			limit.Min = *s.Limits[i].MinReplicas
		}
		result = append(result, limit)
	}
	return result, nil
}

func spreadConstraints(constraints []policyv1alpha1.SpreadConstraint) []core.SpreadConstraint {
	var result []core.SpreadConstraint
	for i, c := range constraints {
		path := fmt.Sprintf("%s.spreadConstraints[%d]", placementPath, i)
		constraint := core.SpreadConstraint{Path: path, Field: core.Field(c.SpreadByField), Min: 1, Max: c.MaxGroups}
		switch {
		case c.SpreadByLabel != "":
			constraint.Field, constraint.Label = core.FieldLabel, c.SpreadByLabel
		case c.SpreadByField == "":
			constraint.Field = core.FieldCluster
		}
		if c.MinGroups != nil {
			constraint.Min = *c.MinGroups
		}
		result = append(result, constraint)
	}
	return result
}
