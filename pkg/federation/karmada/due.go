package karmada

import (
	"encoding/json"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// Suspended tells whether no decision is made for a binding at this time.
func Suspended(b bindings.Binding) bool {
	suspension := b.BindingSpec().Suspension
	return suspension != nil && suspension.Scheduling != nil && *suspension.Scheduling
}

// NeedsDecision tells whether a binding is to be decided anew: always for what is not divided by room, since there the
// decision follows from policy and clusters alone. Replicas that were divided by room stay where they are until the
// policy or their number changes, somebody asks for it, or a cluster goes away; so do all others during a return.
func NeedsDecision(b bindings.Binding, clusters core.Snapshot) bool {
	translated, err := Translate(b)
	return err != nil || !Settled(b, translated) || losesCluster(b.BindingSpec(), clusters)
}

// Translate a binding for a decision that follows the last one, whether or not the status tells that already.
func Translate(b bindings.Binding) (core.Binding, error) {
	return Binding(b.BindingSpec(), Explained(b))
}

// Settled bindings have their replicas divided by room, all of them, and for the placement that they have. Those that
// are divided by static weights are settled while they return, since a step of a return is not what the weights say.
func Settled(b bindings.Binding, translated core.Binding) bool {
	decided, found := DecidedOf(b)
	if !found || !translated.Workload || translated.Fresh {
		return false
	}
	switch translated.Placement.Strategy {
	case core.Duplicated:
		return false
	case core.StaticWeight:
		if !Returning(b.BindingSpec()) {
			return false
		}
	}
	return !PlacementChanged(b) && allPlaced(b.BindingSpec(), len(translated.Components) > 0) && !decided.saysNoPlace()
}

// saysNoPlace tells of replicas without a place. When there are none any more, as fewer are wanted, a decision has to
// say so.
func (d Decided) saysNoPlace() bool {
	switch d.Reason {
	case workv1alpha2.ReasonUnschedulable, workv1alpha2.ReasonNoClusterFit, workv1alpha2.ReasonWaiting:
		return true
	}
	return false
}

// Patience of the next decision about a binding with members of which nothing is known yet. It has some, for as long as
// limit altogether, where nothing was placed by this placement before: what decisions choose then stays. What is placed
// does not wait, nor does what has to leave a cluster, nor what somebody asked for.
func Patience(b bindings.Binding, limit time.Duration, now time.Time) core.Patience {
	spec := b.BindingSpec()
	decided, _ := DecidedOf(b)
	nowhere := len(spec.Clusters) == 0 &&
		(decided.Reason == workv1alpha2.ReasonNoClusterFit || decided.Reason == workv1alpha2.ReasonWaiting)
	if !PlacementChanged(b) && !nowhere || len(evicted(spec)) > 0 || Fresh(spec, Explained(b)) {
		return core.Patience{}
	}
	since := now.Truncate(time.Second) // As it is stored.
	if decided.Reason == workv1alpha2.ReasonWaiting {
		since = decided.Time.Time
	}
	return core.Patience{Now: now, Until: since.Add(limit)}
}

// PlacementChanged tells whether the clusters of a binding were chosen for another placement.
func PlacementChanged(b bindings.Binding) bool {
	var applied policyv1alpha1.Placement
	text, found := b.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
	if !found || json.Unmarshal([]byte(text), &applied) != nil {
		return true
	}
	placement := b.BindingSpec().Placement
	return placement == nil || !apiequality.Semantic.DeepEqual(*placement, applied)
}

func sumOf(clusters []workv1alpha2.TargetCluster) int32 {
	var sum int32
	for _, c := range clusters {
		sum += c.Replicas
	}
	return sum
}

func losesCluster(spec *workv1alpha2.ResourceBindingSpec, clusters core.Snapshot) bool {
	for _, c := range spec.Clusters {
		if !clusters.Serves(c.Name) {
			return true
		}
	}
	return false
}
