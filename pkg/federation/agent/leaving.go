package agent

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// errLeft: the member has left the fleet, and the agent has removed itself.
var errLeft = errors.New("the member has left the fleet")

// watchLeaving removes the agent when its member has left. That it is about to leave was seen and stored before: a
// fleet that knows nothing of the member, because it was restored from a backup for example, is no reason.
func (a *agent) watchLeaving(ctx context.Context) error {
	for {
		if left, err := a.hasLeft(ctx); err != nil && ctx.Err() == nil {
			a.log.V(1).Info("Cannot find out whether the member has left", "reason", err.Error())
		} else if left {
			if err := a.remove(ctx); err == nil {
				return errLeft
			} else if ctx.Err() == nil {
				a.state.say(a.log, "Cannot remove the agent yet", "reason", err.Error())
			}
		}
		if err := a.pause(ctx); err != nil {
			return err
		}
	}
}

func (a *agent) hasLeft(ctx context.Context) (bool, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	secret, err := a.store.read(ctx, credentialsSecret)
	if err != nil || len(secret.Data[leavingKey]) == 0 {
		return false, err
	}
	cluster := &clusterv1alpha1.Cluster{}
	err = a.fleet.Get(ctx, client.ObjectKey{Name: a.invited.member}, cluster)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		// What the agent may do in the fleet goes with its Cluster.
		return true, nil
	case err != nil:
		return false, err
	case cluster.DeletionTimestamp == nil:
		return false, a.store.setLeaving(ctx, false)
	}
	return false, nil
}

func (a *agent) remove(ctx context.Context) error {
	ctx, cancel := within(ctx)
	defer cancel()
	if err := registration.RemoveAgent(ctx, a.member, a.Namespace); err != nil {
		return fmt.Errorf("removing the agent from the member: %w", err)
	}
	a.log.Info("The member has left the fleet, and the agent has removed itself", "member", a.invited.member)
	return nil
}
