package fleets

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/moves"
)

// maxMoves are told at once.
const maxMoves = moves.Most

// moves tells what moved in the last days: what the fleet has kept, what bindings remember, and decisions on machines.
// Events are not asked: anybody may write one.
func (h *Handler) moves(ctx context.Context, fleet client.Client, r *http.Request) (any, error) {
	about := objectIn(r)
	found, err := kept(ctx, fleet, h.Now())
	if err != nil {
		return nil, err
	}
	list, err := bindingsAbout(ctx, fleet, about)
	if err != nil {
		return nil, err
	}
	for _, b := range list {
		found = append(found, moves.Of(b)...)
	}
	if about.Kind == "" {
		decisions, err := growthMoves(ctx, fleet)
		if err != nil {
			return nil, err
		}
		found = append(found, decisions...)
	}
	return newest(found, about), nil
}

// kept is nothing for who may not read it: they are told what else is known.
func kept(ctx context.Context, fleet client.Client, now time.Time) ([]moves.Move, error) {
	found, err := moves.Read(ctx, fleet, now)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return found, err
}

// newest orders moves, and leaves out those of other objects, and what is told twice.
func newest(found []moves.Move, about Object) map[string]any {
	items, told := []moves.Move{}, map[string]bool{}
	for _, m := range found {
		isAbout := about.Kind == "" || m.Object.Kind == about.Kind && m.Object.Name == about.Name &&
			m.Object.Namespace == about.Namespace
		if isAbout && !told[m.Key()] {
			items = append(items, m)
		}
		told[m.Key()] = true
	}
	slices.SortStableFunc(items, func(a, b moves.Move) int { return b.Time.Compare(a.Time.Time) })
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

// growthMoves are decisions about machines. A fleet need not serve the kind.
func growthMoves(ctx context.Context, fleet client.Client) ([]moves.Move, error) {
	var list fleetv1alpha1.FleetGrowthList
	err := fleet.List(ctx, &list)
	if meta.IsNoMatchError(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing FleetGrowths: %w", err)
	}
	var result []moves.Move
	for i := range list.Items {
		growth := moves.Object{
			APIVersion: fleetv1alpha1.GroupVersion.String(), Kind: "FleetGrowth", Name: list.Items[i].Name,
		}
		for _, d := range list.Items[i].Status.Decisions {
			message := d.Reason
			if d.Error != "" {
				message += ": " + d.Error
			}
			result = append(result, moves.Move{
				Time: d.Time, Object: growth, Type: "Growth", Reason: d.Action, Message: message,
				Clusters: []string{d.Shoot},
			})
		}
	}
	return result, nil
}
