// Package karmada translates the policies, bindings and clusters of the Karmada dialect into the model of
// pkg/federation/core, and decisions back.
package karmada

import (
	"fmt"

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

// Cluster gives what decisions look at.
func Cluster(c *clusterv1alpha1.Cluster) core.Cluster {
	result := Identity(c)
	result.Taints = c.Spec.Taints
	result.Deleting = c.DeletionTimestamp != nil
	result.APIs = apis(c.Status.APIEnablements)
	result.Room = room(c.Status.ResourceSummary)
	return result
}

// Identity gives the part that affinities match.
func Identity(c *clusterv1alpha1.Cluster) core.Cluster {
	return core.Cluster{Name: c.Name, Labels: c.Labels, Provider: c.Spec.Provider, Region: c.Spec.Region, Zones: zones(c.Spec)}
}

// zones adds the older single zone to the list.
func zones(spec clusterv1alpha1.ClusterSpec) []string {
	if len(spec.Zones) == 0 && spec.Zone != "" {
		return []string{spec.Zone}
	}
	return spec.Zones
}

func apis(enablements []clusterv1alpha1.APIEnablement) map[schema.GroupVersionKind]struct{} {
	kinds := map[schema.GroupVersionKind]struct{}{}
	for _, e := range enablements {
		gv, err := schema.ParseGroupVersion(e.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range e.Resources {
			kinds[gv.WithKind(r.Kind)] = struct{}{}
		}
	}
	return kinds
}

func room(summary *clusterv1alpha1.ResourceSummary) *core.Room {
	if summary == nil {
		return nil
	}
	return &core.Room{
		Allocatable: Amounts(summary.Allocatable),
		Allocated:   Amounts(summary.Allocated),
		Allocating:  Amounts(summary.Allocating),
	}
}

// Amounts gives CPU in millicores and everything else in its base unit.
func Amounts(list corev1.ResourceList) map[string]int64 {
	amounts := make(map[string]int64, len(list))
	for name, quantity := range list {
		if name == corev1.ResourceCPU {
			amounts[string(name)] = quantity.MilliValue()
		} else {
			amounts[string(name)] = quantity.Value()
		}
	}
	return amounts
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
	}
	if b.Fresh {
		b.PreviousTerm = "" // Who asks for a new decision wants the first affinity again, if it can be had.
	}
	if spec.ReplicaRequirements != nil {
		b.Request = Amounts(spec.ReplicaRequirements.ResourceRequest)
	}
	for _, c := range spec.Clusters {
		b.Previous = append(b.Previous, core.Target{Cluster: c.Name, Replicas: c.Replicas})
	}
	b.Evicted = evicted(spec)
	if back := spec.LastFailBack; back != nil && back.AffinityName != "" {
		b.PreviousTerm = back.AffinityName
	}
	return b, nil
}

// IsWorkload tells whether the object has replicas, or components that have some. Components are placed whole: such an object
// goes to the chosen clusters as it is.
func IsWorkload(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Replicas > 0 || spec.ReplicaRequirements != nil || len(spec.Components) > 0
}

// Fresh tells whether someone asked for a decision from scratch since the last one.
func Fresh(spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus) bool {
	return spec.RescheduleTriggeredAt != nil && status.LastScheduledTime != nil &&
		spec.RescheduleTriggeredAt.After(status.LastScheduledTime.Time)
}

// Targets gives a decision in the form of bindings.
func Targets(targets []core.Target) []workv1alpha2.TargetCluster {
	var result []workv1alpha2.TargetCluster
	for _, t := range targets {
		result = append(result, workv1alpha2.TargetCluster{Name: t.Cluster, Replicas: t.Replicas})
	}
	return result
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
	spread, err := spreadConstraints(p.SpreadConstraints)
	if err != nil {
		return core.Placement{}, err
	}
	return core.Placement{Terms: terms, Tolerations: p.ClusterTolerations, Spread: spread, Strategy: strategy, Weights: weights}, nil
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
		if len(term.OverflowAffinities) > 0 {
			return nil, fmt.Errorf("%s.overflowAffinities: not offered yet; leave it out", path)
		}
		affinity, err := Affinity(path, &term.ClusterAffinity)
		if err != nil {
			return nil, err
		}
		terms = append(terms, core.Term{Name: term.AffinityName, Affinity: affinity})
	}
	return terms, nil
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
			return result, fmt.Errorf("%s.fieldSelector.matchExpressions[%d].operator: must be In or NotIn, not %q", path, i, e.Operator)
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
	case s.WeightPreference == nil || s.WeightPreference.DynamicWeight == "":
		return core.StaticWeight, nil
	case s.WeightPreference.DynamicWeight == policyv1alpha1.DynamicWeightByAvailableReplicas:
		return core.DynamicWeight, nil
	}
	return 0, fmt.Errorf("%s.replicaScheduling.weightPreference.dynamicWeight: must be AvailableReplicas, not %q", placementPath, s.WeightPreference.DynamicWeight)
}

func weights(s *policyv1alpha1.ReplicaSchedulingStrategy) ([]core.Weight, error) {
	if s == nil || s.WeightPreference == nil {
		return nil, nil
	}
	var result []core.Weight
	for i := range s.WeightPreference.StaticWeightList {
		entry := &s.WeightPreference.StaticWeightList[i]
		path := fmt.Sprintf("%s.replicaScheduling.weightPreference.staticWeightList[%d].targetCluster", placementPath, i)
		affinity, err := Affinity(path, &entry.TargetCluster)
		if err != nil {
			return nil, err
		}
		result = append(result, core.Weight{Affinity: affinity, Weight: entry.Weight})
	}
	return result, nil
}

func spreadConstraints(constraints []policyv1alpha1.SpreadConstraint) ([]core.SpreadConstraint, error) {
	var result []core.SpreadConstraint
	for i, c := range constraints {
		path := fmt.Sprintf("%s.spreadConstraints[%d]", placementPath, i)
		if c.SpreadByLabel != "" {
			return nil, fmt.Errorf("%s.spreadByLabel: not offered yet; use spreadByField cluster or region", path)
		}
		constraint := core.SpreadConstraint{Path: path, Field: core.Field(c.SpreadByField), Min: 1, Max: c.MaxGroups}
		if c.SpreadByField == "" {
			constraint.Field = core.FieldCluster
		}
		if c.MinGroups != nil {
			constraint.Min = *c.MinGroups
		}
		result = append(result, constraint)
	}
	return result, nil
}
