package karmada

import (
	"slices"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// Unit gives the components of an object that is placed as a unit: it has components, and a spread constraint wants
// exactly one cluster. It is nil for all others. A decision reckons with one replica then, which is a set of all
// components.
func Unit(spec *workv1alpha2.ResourceBindingSpec) []core.Component {
	if len(spec.Components) == 0 || spec.Placement == nil ||
		!core.OneCluster(spreadConstraints(spec.Placement.SpreadConstraints)) {
		return nil
	}
	var result []core.Component
	for _, c := range spec.Components {
		component := core.Component{Name: c.Name, Replicas: c.Replicas}
		if r := c.ReplicaRequirements; r != nil {
			component.Request, component.Nodes = Resources(r.ResourceRequest), NodeClaim(r.NodeClaim)
		}
		result = append(result, component)
	}
	return result
}

// previousOf is what a decision reckons with in a cluster that has the object.
func previousOf(c workv1alpha2.TargetCluster, unit bool) core.Target {
	if unit {
		return core.Target{Cluster: c.Name, Replicas: 1}
	}
	return core.Target{Cluster: c.Name, Replicas: c.Replicas}
}

// Targets gives a decision in the form of bindings: of a unit, the cluster has all components.
func Targets(spec *workv1alpha2.ResourceBindingSpec, targets []core.Target) []workv1alpha2.TargetCluster {
	unit := Unit(spec) != nil
	var result []workv1alpha2.TargetCluster
	for _, t := range targets {
		if unit {
			result = append(result, workv1alpha2.TargetCluster{Name: t.Cluster, Components: wholeOf(spec)})
		} else {
			result = append(result, workv1alpha2.TargetCluster{Name: t.Cluster, Replicas: t.Replicas})
		}
	}
	return result
}

// wholeOf is a set of the components.
func wholeOf(spec *workv1alpha2.ResourceBindingSpec) []workv1alpha2.TargetComponent {
	var result []workv1alpha2.TargetComponent
	for _, c := range spec.Components {
		result = append(result, workv1alpha2.TargetComponent{Name: c.Name, Replicas: c.Replicas})
	}
	return result
}

// allPlaced tells whether everything that is wanted has a place.
func allPlaced(spec *workv1alpha2.ResourceBindingSpec, unit bool) bool {
	if unit {
		return len(spec.Clusters) == 1 && slices.Equal(spec.Clusters[0].Components, wholeOf(spec))
	}
	return sumOf(spec.Clusters) == spec.Replicas
}
