package fleets

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/rollout"
)

// change gives what is to be asked of a rollout.
type change func(*workv1alpha2.RolloutControl, *workv1alpha2.RolloutStatus) (*workv1alpha2.RolloutControl, error)

// control changes what is asked of a rollout.
func (h *Handler) control(ctx context.Context, fleet client.Client, r *http.Request) (any, error) {
	var body struct {
		Object
		Action   string `json:"action"`
		Revision string `json:"revision"`
	}
	if err := reply.Read(r, &body); err != nil {
		return nil, err
	}
	if err := body.check(); err != nil {
		return nil, err
	}
	actions := map[string]change{
		"pause": rollout.Pause, "resume": rollout.Resume,
		"undo": func(c *workv1alpha2.RolloutControl, s *workv1alpha2.RolloutStatus) (*workv1alpha2.RolloutControl,
			error) {
			return rollout.Undo(c, s, body.Revision)
		},
	}
	action, found := actions[body.Action]
	if !found {
		return nil, reply.BadRequest("action must be pause, resume or undo")
	}
	return nil, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		return h.controlOnce(ctx, fleet, body.Object, body.Action != "pause", action)
	})
}

// controlOnce is refused while the fleet does not know the object as it is, if it has to: it would be about the rollout
// before.
func (h *Handler) controlOnce(ctx context.Context, fleet client.Client, o Object, mustBeSeen bool,
	action change) error {
	b, err := bindingOf(ctx, fleet, o)
	if err != nil {
		return err
	}
	status := b.BindingStatus().Rollout
	if b.BindingSpec().Rollout == nil || status == nil {
		return internal{errors.New("the object has no staged rollout: its policy has no spec.rollout, or nothing was " +
			"decided yet")}
	}
	if mustBeSeen {
		template, err := bindings.GetTemplate(ctx, fleet, bindings.TemplateOf(b))
		if err != nil {
			return err
		}
		if template != nil && template.GetGeneration() > rollout.SeenGeneration(status) {
			return internal{errors.New("the object was changed, and the fleet's controllers have not looked at that " +
				"yet: try again")}
		}
	}
	before := b.DeepCopyObject().(bindings.Binding)
	wanted, err := action(b.BindingSpec().RolloutControl, status)
	if err != nil {
		return internal{err}
	}
	b.BindingSpec().RolloutControl = wanted
	return fleet.Patch(ctx, b, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
