package trellisctl

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/trellisctl/progress"
)

const (
	// lineTick is how often the time in the line of a terminal goes on.
	lineTick = time.Second
	// reconnectAfter is how long a connection rests that was lost or has ended before the next one.
	reconnectAfter = 2 * time.Second
)

func (c *cli) waitCommand() *cobra.Command {
	w := waiting{wait: true}
	command := &cobra.Command{
		Use:   "shoot [NAME]",
		Short: "Wait until a shoot is as it is asked to be, and show how far it is",
		Example: `  trellisctl wait shoot member1 --project demo
  trellisctl wait shoot --timeout 5m`,
		Args: oneShoot, ValidArgsFunction: c.completeShoot(),
		RunE: func(command *cobra.Command, arguments []string) error {
			session, err := c.shootSession(arguments)
			if err != nil {
				return err
			}
			shoot, err := session.Shoot(command.Context())
			if err != nil {
				return err
			}
			goal := session.goalOf(shoot)
			goal.Gone = shoot.DeletionTimestamp != nil
			goal.Operations = gardencorev1beta1.SplitOperations(
				shoot.Annotations[gardencorev1beta1.GardenerOperation])
			return session.await(command, w, goal)
		},
	}
	w.timeoutFlag(command, defaultTimeout)
	parent := &cobra.Command{
		Use: "wait", Short: "Wait until what was asked for is done", Example: command.Example,
	}
	parent.AddCommand(command)
	return parent
}

// goalOf is to bring about what is asked of a shoot now.
func (s *Session) goalOf(shoot *gardencorev1beta1.Shoot) progress.Goal {
	return progress.GoalOf(shoot, s.inCommands(shoot))
}

// inCommands is how a shoot is named in commands that people are told to run.
func (s *Session) inCommands(shoot *gardencorev1beta1.Shoot) string {
	if s.Target.Project == "" {
		return shoot.Name
	}
	return shoot.Name + " --project " + s.Target.Project
}

// await waits for a goal if that is wanted, and shows how far it is. Else it says how to.
func (s *Session) await(command *cobra.Command, w waiting, goal progress.Goal) error {
	if !w.wait {
		tell(command)("See how far it is: trellisctl wait shoot %s", goal.Command)
		return nil
	}
	err := s.waitFor(command.Context(), command.ErrOrStderr(), w.timeout, goal)
	if err != nil {
		return err
	}
	if goal.Gone {
		fmt.Fprintf(command.OutOrStdout(), "Shoot %s is gone\n", goal.Key)
	} else {
		fmt.Fprintf(command.OutOrStdout(), "Shoot %s is done\n", goal.Key)
	}
	return nil
}

// waitFor waits until the goal is reached, or cannot be.
func (s *Session) waitFor(ctx context.Context, out io.Writer, timeout time.Duration, goal progress.Goal) error {
	begun := time.Now()
	watching, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	view, line := progress.NewView(goal, begun), newLiveLine(out)
	looks := s.follow(watching, goal.Key)
	tick := time.NewTicker(lineTick)
	defer tick.Stop()
	for {
		select {
		case one := <-looks:
			if ended, err := take(view, one); ended {
				line.clear()
				return err
			}
		case <-tick.C:
		case <-watching.Done():
			line.clear()
			if ctx.Err() != nil {
				fmt.Fprintln(out, goal.Interrupted())
				return ctx.Err()
			}
			return goal.TimeIsOver(timeout, view.Sight())
		}
		line.show(view, time.Now())
	}
}

// look is one look at a shoot: what it is like, nil if it does not exist any more, or why that is not known.
type look struct {
	shoot *gardencorev1beta1.Shoot
	err   error
}

// take has the view see what there is to see, and tells whether that was the end.
func take(view *progress.View, one look) (ended bool, err error) {
	switch {
	case isRefusal(one.err):
		return true, fmt.Errorf("reading the shoot that is waited for: %w; the operation goes on without this command",
			one.err)
	case one.err != nil:
		view.Lost(one.err)
		return false, nil
	}
	sight := view.See(one.shoot)
	return sight.Ended, sight.Err
}

// follow sends what a shoot is like whenever it changes, until the context ends. After a lost connection it begins
// anew.
func (s *Session) follow(ctx context.Context, key client.ObjectKey) <-chan look {
	looks := make(chan look)
	send := func(one look) {
		select {
		case looks <- one:
		case <-ctx.Done():
		}
	}
	go func() {
		for ctx.Err() == nil {
			if err := s.watchShoot(ctx, key, send); err != nil && ctx.Err() == nil {
				send(look{err: err})
			}
			pause(ctx, reconnectAfter)
		}
	}()
	return looks
}

// watchShoot sends what a shoot is like, and what becomes of it, until the connection ends.
func (s *Session) watchShoot(ctx context.Context, key client.ObjectKey, send func(look)) error {
	shoot := &gardencorev1beta1.Shoot{}
	err := s.client.Get(ctx, key, shoot)
	if apierrors.IsNotFound(err) {
		send(look{})
		return nil
	}
	if err != nil {
		return err
	}
	send(look{shoot: shoot})
	options := &client.ListOptions{
		Namespace: key.Namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", key.Name),
		Raw: &metav1.ListOptions{ResourceVersion: shoot.ResourceVersion},
	}
	changes, err := s.watches.Watch(ctx, &gardencorev1beta1.ShootList{}, options)
	if err != nil {
		return err
	}
	defer changes.Stop()
	for {
		select {
		case change, open := <-changes.ResultChan():
			if !open {
				return nil
			}
			changed, ok := change.Object.(*gardencorev1beta1.Shoot)
			switch {
			case !ok:
				return apierrors.FromObject(change.Object)
			case changed.Name != key.Name:
			case change.Type == watch.Deleted:
				send(look{})
			default:
				send(look{shoot: changed})
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
