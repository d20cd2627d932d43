package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// filter keeps the clusters that may take the object, in the order of names.
func filter(s Snapshot, b Binding, term Term, why reasons) []*Cluster {
	fitting := make([]*Cluster, 0, len(s.clusters))
	for i := range s.clusters {
		c := &s.clusters[i]
		if code, message := reject(c, b, term); code != "" {
			why.add(c.Name, code, message)
			continue
		}
		fitting = append(fitting, c)
	}
	return fitting
}

// reject gives the first reason against a cluster. A cluster that has the object already keeps it when its API or
// taints change.
func reject(c *Cluster, b Binding, term Term) (ReasonCode, string) {
	switch {
	case c.Deleting:
		return ClusterDeleting, "the cluster is being removed from the fleet"
	case !term.Matches(c):
		return AffinityMismatch, "not matched by " + orDefault(term.Path, "the placement")
	case slices.Contains(b.Evicted, c.Name):
		return BeingEvicted, "the object is being moved away from this cluster"
	}
	if !hasTarget(b.Previous, c.Name) {
		if _, served := c.APIs[b.Kind]; !served {
			return APINotServed, "the cluster does not serve " + b.Kind.GroupVersion().String() + " " + b.Kind.Kind
		}
		if taint := untolerated(c.Taints, b.Placement.Tolerations); taint != nil {
			return TaintNotTolerated, "taint " + taint.ToString() + " is not tolerated"
		}
	}
	for _, constraint := range b.Placement.Spread {
		if !hasProperty(c, constraint.Field) {
			return PropertyMissing, "the cluster has no " + string(constraint.Field) + ", which " + constraint.Path + " groups by"
		}
	}
	return "", ""
}

// Matches tells whether a cluster satisfies the affinity.
func (a Affinity) Matches(c *Cluster) bool {
	if slices.Contains(a.Exclude, c.Name) {
		return false
	}
	if len(a.Names) > 0 && !slices.Contains(a.Names, c.Name) {
		return false
	}
	if a.Labels != nil && !a.Labels.Matches(c.Labels) {
		return false
	}
	return !slices.ContainsFunc(a.Fields, func(r FieldRequirement) bool { return !r.matches(c) })
}

// matches: In wants any of the cluster's values among Values, NotIn wants none of them there.
func (r FieldRequirement) matches(c *Cluster) bool {
	among := slices.ContainsFunc(properties(c, r.Field), func(v string) bool { return slices.Contains(r.Values, v) })
	return among != r.Not
}

// properties of a cluster; empty ones are left out.
func properties(c *Cluster, field Field) []string {
	switch field {
	case FieldCluster:
		return []string{c.Name}
	case FieldZone:
		return c.Zones
	case FieldRegion:
		return nonEmpty(c.Region)
	case FieldProvider:
		return nonEmpty(c.Provider)
	}
	return nil
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func hasProperty(c *Cluster, field Field) bool { return len(properties(c, field)) > 0 }

// untolerated finds the first taint that keeps objects away.
func untolerated(taints []corev1.Taint, tolerations []corev1.Toleration) *corev1.Taint {
	for i := range taints {
		taint := &taints[i]
		if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		if !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return tolerates(t, *taint) }) {
			return taint
		}
	}
	return nil
}

func tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key != "" && t.Key != taint.Key {
		return false
	}
	if t.Operator == corev1.TolerationOpExists {
		return true
	}
	return (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == taint.Value
}

func hasTarget(targets []Target, cluster string) bool {
	return slices.ContainsFunc(targets, func(t Target) bool { return t.Cluster == cluster })
}

func orDefault(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
