package fleets

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
)

// Move is something that changed where an object runs, or how.
type Move struct {
	Time     metav1.Time `json:"time"`
	Object   Object      `json:"object"`
	Type     string      `json:"type"`
	Reason   string      `json:"reason"`
	Message  string      `json:"message,omitempty"`
	Clusters []string    `json:"clusters,omitempty"`
}

const (
	maxMoves  = 500
	maxEvents = 1000
)

// moving are actions of events that change where objects run, or how many.
var moving = sets.New("Evict", "Failover", "Rollout", "Schedule", "Scale", "Delete", "Remove")

// moves tells what the fleet still knows of moves.
func (h *Handler) moves(ctx context.Context, fleet client.Client, r *http.Request) (any, error) {
	about := objectIn(r)
	var found []Move
	list, err := bindingsAbout(ctx, fleet, about)
	if err != nil {
		return nil, err
	}
	for _, b := range list {
		found = append(found, movesOf(b)...)
	}
	events, err := eventMoves(ctx, fleet, about.Namespace)
	if err != nil {
		return nil, err
	}
	found = append(found, events...)
	if about.Kind == "" {
		decisions, err := growthMoves(ctx, fleet)
		if err != nil {
			return nil, err
		}
		found = append(found, decisions...)
	}
	return newest(found, about), nil
}

// newest orders moves, and leaves out those of other objects.
func newest(found []Move, about Object) map[string]any {
	items := []Move{}
	for _, m := range found {
		if about.Kind == "" || m.Object.Kind == about.Kind && m.Object.Name == about.Name &&
			m.Object.Namespace == about.Namespace {
			items = append(items, m)
		}
	}
	slices.SortStableFunc(items, func(a, b Move) int { return b.Time.Compare(a.Time.Time) })
	items = items[:min(len(items), maxMoves)]
	result := map[string]any{"items": items}
	if len(items) > 0 {
		result["since"] = items[len(items)-1].Time
	}
	return result
}

func bindingsAbout(ctx context.Context, fleet client.Client, about Object) ([]bindings.Binding, error) {
	if about.Kind == "" {
		return bindings.List(ctx, fleet)
	}
	if err := about.check(); err != nil {
		return nil, err
	}
	b, err := bindingOf(ctx, fleet, about)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return []bindings.Binding{b}, err
}

// movesOf reads what a binding remembers.
func movesOf(b bindings.Binding) []Move {
	var result []Move
	spec, o := b.BindingSpec(), objectOf(b)
	for _, task := range spec.GracefulEvictionTasks {
		if task.CreationTimestamp != nil {
			result = append(result, Move{
				Time: *task.CreationTimestamp, Object: o, Type: "Eviction", Reason: task.Reason, Message: task.Message,
				Clusters: []string{task.FromCluster},
			})
		}
	}
	if spec.BeforeFailover != nil {
		for _, failed := range spec.BeforeFailover.Failed {
			result = append(result, Move{
				Time: failed.Time, Object: o, Type: "Failover", Reason: failed.Reason, Clusters: []string{failed.Name},
			})
		}
	}
	if back := spec.LastFailBack; back != nil {
		result = append(result, Move{Time: back.Time, Object: o, Type: "FailBack", Reason: "FailBack",
			Clusters: back.Clusters})
	}
	if status := b.BindingStatus(); status.Rollout != nil {
		for _, revision := range status.Rollout.Revisions {
			result = append(result, Move{
				Time: revision.Time, Object: o, Type: "Rollout", Reason: "NewRevision",
				Message: fmt.Sprintf("rollout %d, revision %s", revision.Number, revision.Revision),
			})
		}
	}
	return append(result, lastDecision(b, o)...)
}

// lastDecision is the last one of the scheduler.
func lastDecision(b bindings.Binding, o Object) []Move {
	status := b.BindingStatus()
	if status.LastScheduledTime == nil {
		return nil
	}
	m := Move{Time: *status.LastScheduledTime, Object: o, Type: "Decision", Reason: "Scheduled"}
	if c := meta.FindStatusCondition(status.Conditions, workv1alpha2.ConditionScheduled); c != nil {
		m.Reason, m.Message = c.Reason, c.Message
	}
	for _, target := range b.BindingSpec().Clusters {
		m.Clusters = append(m.Clusters, target.Name)
	}
	return []Move{m}
}

// eventMoves reads events. Who may not list them is told what else is known.
func eventMoves(ctx context.Context, fleet client.Client, namespace string) ([]Move, error) {
	var list eventsv1.EventList
	err := fleet.List(ctx, &list, client.InNamespace(namespace), client.Limit(maxEvents))
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing events: %w", err)
	}
	var result []Move
	for i := range list.Items {
		e := &list.Items[i]
		if !moving.Has(e.Action) {
			continue
		}
		about := e.Regarding
		result = append(result, Move{
			Time: timeOf(e), Object: Object{about.APIVersion, about.Kind, about.Namespace, about.Name}, Type: e.Action,
			Reason: e.Reason, Message: e.Note,
		})
	}
	return result, nil
}

func timeOf(e *eventsv1.Event) metav1.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return metav1.NewTime(e.Series.LastObservedTime.Time)
	case !e.EventTime.IsZero():
		return metav1.NewTime(e.EventTime.Time)
	}
	return e.CreationTimestamp
}

// growthMoves are decisions about machines. A fleet need not serve the kind.
func growthMoves(ctx context.Context, fleet client.Client) ([]Move, error) {
	var list fleetv1alpha1.FleetGrowthList
	err := fleet.List(ctx, &list)
	if meta.IsNoMatchError(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing FleetGrowths: %w", err)
	}
	var result []Move
	for i := range list.Items {
		growth := Object{fleetv1alpha1.GroupVersion.String(), "FleetGrowth", "", list.Items[i].Name}
		for _, d := range list.Items[i].Status.Decisions {
			message := d.Reason
			if d.Error != "" {
				message += ": " + d.Error
			}
			result = append(result, Move{
				Time: d.Time, Object: growth, Type: "Growth", Reason: d.Action, Message: message,
				Clusters: []string{d.Shoot},
			})
		}
	}
	return result, nil
}
