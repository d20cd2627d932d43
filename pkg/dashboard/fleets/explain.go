// Package fleets answers what pages ask about fleets: where objects run and why, what a change would move, rollouts,
// deletions that are held, and what was moved. It acts as the user, with a fleet's own API.
package fleets

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
	"github.com/trellis-garden/trellis/pkg/federation/policies"
)

// Object that something is about.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func (o Object) key() bindings.TemplateKey {
	return bindings.TemplateKey{
		GroupVersionKind: schema.FromAPIVersionAndKind(o.APIVersion, o.Kind),
		NamespacedName:   types.NamespacedName{Namespace: o.Namespace, Name: o.Name},
	}
}

func (o Object) check() error {
	if o.APIVersion == "" || o.Kind == "" || o.Name == "" {
		return reply.BadRequest("apiVersion, kind and name must be given")
	}
	return nil
}

func objectOf(b bindings.Binding) Object {
	resource := b.BindingSpec().Resource
	return Object{resource.APIVersion, resource.Kind, b.GetNamespace(), resource.Name}
}

// Explanation is the last decision about an object.
type Explanation struct {
	Object            Object             `json:"object"`
	Policy            string             `json:"policy,omitempty"`
	RequiredBy        []string           `json:"requiredBy,omitempty"`
	Scheduled         *Condition         `json:"scheduled,omitempty"`
	Strategy          string             `json:"strategy,omitempty"`
	Affinity          string             `json:"affinity,omitempty"`
	SkippedAffinities []Named            `json:"skippedAffinities,omitempty"`
	Groups            []Group            `json:"groups,omitempty"`
	Clusters          []ExplainedCluster `json:"clusters"`
	Omitted           int32              `json:"omitted,omitempty"`
	Growth            *Named             `json:"growth,omitempty"`
}

// Condition of an object.
type Condition struct {
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Named says something about what has a name.
type Named struct {
	Name    string `json:"name"`
	Message string `json:"message"`
}

// Group of clusters that spread constraints make.
type Group struct {
	Name     string `json:"name"`
	Clusters int32  `json:"clusters"`
	Score    int64  `json:"score"`
	Chosen   bool   `json:"chosen"`
}

// ExplainedCluster says why a cluster has an object, or not.
type ExplainedCluster struct {
	Name      string `json:"name"`
	Chosen    bool   `json:"chosen"`
	Fits      bool   `json:"fits"`
	Score     int64  `json:"score,omitempty"`
	Weight    int64  `json:"weight,omitempty"`
	Available *int64 `json:"available,omitempty"`
	Replicas  *int32 `json:"replicas,omitempty"`
	// Reason and Message of the first check that it failed.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Applied and Health are what became of the object there.
	Applied *bool  `json:"applied,omitempty"`
	Health  string `json:"health,omitempty"`
}

// explain tells of the last decision about an object.
func explain(ctx context.Context, fleet client.Client, o Object) (*Explanation, error) {
	b, err := bindingOf(ctx, fleet, o)
	if err != nil {
		return nil, err
	}
	result, err := explanationOf(b)
	if err != nil {
		return nil, err
	}
	result.Growth, err = growthFor(ctx, fleet, b)
	return result, err
}

// bindingOf gives the binding of an object; the error says why there is none.
func bindingOf(ctx context.Context, fleet client.Client, o Object) (bindings.Binding, error) {
	key := o.key()
	b, err := bindings.Get(ctx, fleet,
		types.NamespacedName{Namespace: key.Namespace, Name: bindings.Name(key.Name, key.Kind)})
	if err != nil {
		return nil, err
	}
	if b != nil && bindings.TemplateOf(b).GroupKind() == key.GroupKind() {
		return b, nil
	}
	template, err := bindings.GetTemplate(ctx, fleet, key)
	switch {
	case err != nil:
		return nil, err
	case template == nil:
		return nil, reply.Error(http.StatusNotFound, metav1.StatusReasonNotFound, "the fleet has no %s", key)
	}
	return nil, reply.Error(http.StatusNotFound, metav1.StatusReasonNotFound, "%s is not propagated: no "+
		"PropagationPolicy or ClusterPropagationPolicy selects it, or its namespace is never propagated", key)
}

// explanationOf reads a decision.
func explanationOf(b bindings.Binding) (*Explanation, error) {
	spec, status := b.BindingSpec(), b.BindingStatus()
	result := &Explanation{
		Object: objectOf(b), Policy: policies.ClaimedBy(b), Affinity: status.SchedulerObservedAffinityName,
		Clusters: []ExplainedCluster{},
	}
	for _, by := range spec.RequiredBy {
		result.RequiredBy = append(result.RequiredBy, by.Name)
	}
	if c := meta.FindStatusCondition(status.Conditions, workv1alpha2.ConditionScheduled); c != nil {
		result.Scheduled = &Condition{string(c.Status), c.Reason, c.Message}
	}
	decision := status.Decision
	if decision == nil {
		return result, nil
	}
	result.Strategy, result.Omitted = decision.Strategy, decision.Omitted
	for _, skipped := range decision.SkippedAffinities {
		result.SkippedAffinities = append(result.SkippedAffinities, Named{skipped.AffinityName, skipped.Message})
	}
	for _, g := range decision.Groups {
		result.Groups = append(result.Groups, Group{g.Name, g.Clusters, g.Score, g.Chosen})
	}
	var err error
	result.Clusters, err = explainedClusters(b)
	return result, err
}

// explainedClusters are those that were chosen, those that would fit, and the others.
func explainedClusters(b bindings.Binding) ([]ExplainedCluster, error) {
	decision := b.BindingStatus().Decision
	ranking, err := decision.Ranking.Clusters()
	if err != nil {
		return nil, fmt.Errorf("status.decision.ranking of the binding: %w", err)
	}
	reasons := map[string]workv1alpha2.DecisionRejection{}
	for _, rejection := range decision.Rejections {
		for cluster := range strings.FieldsSeq(rejection.Clusters) {
			reasons[cluster] = rejection
		}
	}
	counted := karmada.IsWorkload(b.BindingSpec()) && len(b.BindingSpec().Components) == 0
	result := make([]ExplainedCluster, 0, len(ranking)+len(reasons))
	for _, r := range ranking {
		c := ExplainedCluster{
			Name: r.Name, Chosen: r.Chosen, Fits: true, Score: r.Score, Weight: r.Weight, Available: r.Available,
			Reason: reasons[r.Name].Reason, Message: reasons[r.Name].Message,
		}
		delete(reasons, r.Name)
		if r.Chosen {
			c.became(b, r.Replicas, counted)
		}
		result = append(result, c)
	}
	for name, rejection := range reasons {
		result = append(result, ExplainedCluster{Name: name, Reason: rejection.Reason, Message: rejection.Message})
	}
	slices.SortStableFunc(result, inOrder)
	return result, nil
}

// inOrder keeps the ranking among those that fit.
func inOrder(a, b ExplainedCluster) int {
	rank := func(c ExplainedCluster) int {
		switch {
		case c.Chosen:
			return 0
		case c.Fits:
			return 1
		}
		return 2
	}
	if rank(a) != rank(b) || rank(a) < 2 {
		return rank(a) - rank(b)
	}
	return strings.Compare(a.Name, b.Name)
}

// became fills in what is known of the object in a cluster that was chosen.
func (c *ExplainedCluster) became(b bindings.Binding, replicas int32, counted bool) {
	c.Reason, c.Message = "", ""
	if counted {
		c.Replicas = &replicas
	}
	for _, status := range b.BindingStatus().AggregatedStatus {
		if status.ClusterName == c.Name {
			c.Applied, c.Health, c.Message = &status.Applied, string(status.Health), status.AppliedMessage
		}
	}
}

// growthFor tells what becomes of the machines that an object without a place may get; nil if it gets none.
func growthFor(ctx context.Context, fleet client.Client, b bindings.Binding) (*Named, error) {
	placement := b.BindingSpec().Placement
	if placement == nil || placement.Growth == "" ||
		meta.IsStatusConditionTrue(b.BindingStatus().Conditions, workv1alpha2.ConditionScheduled) {
		return nil, nil
	}
	growth := &fleetv1alpha1.FleetGrowth{}
	err := fleet.Get(ctx, client.ObjectKey{Name: placement.Growth}, growth)
	switch {
	case apierrors.IsNotFound(err):
		return &Named{placement.Growth, "the fleet has no such FleetGrowth"}, nil
	case err != nil:
		return nil, fmt.Errorf("reading FleetGrowth %s: %w", placement.Growth, err)
	}
	result := &Named{growth.Name, "not looked at yet"}
	if c := meta.FindStatusCondition(growth.Status.Conditions, fleetv1alpha1.GrowthSatisfied); c != nil {
		result.Message = c.Message
	}
	return result, nil
}
