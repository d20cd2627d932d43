package trellisctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/rollout"
)

func (c *cli) rolloutCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "rollout",
		Short: "Look after staged rollouts of a fleet's objects",
		Long: `A policy with spec.rollout brings changes of its objects to their clusters wave by wave: the next wave comes when all clusters that
have the change are healthy. rollout shows how far that is, and stops it, lets it go on, or takes it back.`,
		Example: "  trellisctl rollout status deployment/web -n shop --watch\n" +
			"  trellisctl rollout undo deployment/web -n shop",
	}
	command.AddCommand(c.rolloutStatusCommand(), c.rolloutHistoryCommand(), c.rolloutUndoCommand())
	command.AddCommand(
		c.rolloutControlCommand("pause", "Let no further wave come",
			"paused; no further wave comes before it is resumed", true, rollout.Pause),
		c.rolloutControlCommand("resume", "Let a rollout go on that was paused, failed or was undone", "resumed", false,
			rollout.Resume),
	)
	return command
}

// rolloutObject is what the commands are about.
type rolloutObject struct {
	access    fleetAccess
	namespace string
}

func (o *rolloutObject) flags(command *cobra.Command) {
	o.access.flags(command)
	command.Flags().StringVarP(&o.namespace, "namespace", "n", "default", "namespace of the object")
}

func (c *cli) rolloutStatusCommand() *cobra.Command {
	var object rolloutObject
	var watch bool
	command := &cobra.Command{
		Use:   "status TYPE/NAME",
		Short: "Show how far the rollout of an object is, and what it waits for",
		Long: `status shows the waves of the last change of an object.

  CLUSTERS     that belong to the wave
  UPDATED      clusters that have the object as it is
  HEALTHY      clusters in which it is healthy, too
  UNAVAILABLE  clusters that are not waited for; they get it when they are back

With --watch it goes on until the rollout ends; it fails if that is not with all clusters.`,
		Example: "  trellisctl rollout status deployment/web -n shop --project demo --shoot fleet\n  trellisctl " +
			"rollout status deployment/web --watch --fleet-kubeconfig fleet.yaml",
		Args: oneObject,
		RunE: func(command *cobra.Command, args []string) error {
			fleet, err := c.fleet(command.Context(), object.access)
			if err != nil {
				return err
			}
			return fleet.RolloutStatus(command.Context(), command.OutOrStdout(), args[0], object.namespace, watch)
		},
	}
	object.flags(command)
	command.Flags().BoolVarP(&watch, "watch", "w", false, "go on until the rollout ends")
	return command
}

func (c *cli) rolloutHistoryCommand() *cobra.Command {
	var object rolloutObject
	command := &cobra.Command{
		Use:     "history TYPE/NAME",
		Short:   "List the revisions of an object that can be gone back to",
		Example: "  trellisctl rollout history deployment/web -n shop",
		Args:    oneObject,
		RunE: func(command *cobra.Command, args []string) error {
			fleet, err := c.fleet(command.Context(), object.access)
			if err != nil {
				return err
			}
			return fleet.RolloutHistory(command.Context(), command.OutOrStdout(), args[0], object.namespace)
		},
	}
	object.flags(command)
	return command
}

// controlChange gives what is to be asked of a rollout.
type controlChange func(*workv1alpha2.RolloutControl, *workv1alpha2.RolloutStatus) (*workv1alpha2.RolloutControl, error)

func (c *cli) rolloutControlCommand(name, short, done string, ahead bool, change controlChange) *cobra.Command {
	var object rolloutObject
	command := &cobra.Command{
		Use: name + " TYPE/NAME", Short: short, Args: oneObject,
		Example: "  trellisctl rollout " + name + " deployment/web -n shop",
		RunE: func(command *cobra.Command, args []string) error {
			fleet, err := c.fleet(command.Context(), object.access)
			if err != nil {
				return err
			}
			if err := fleet.ControlRollout(command.Context(), args[0], object.namespace, ahead, change); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s %s\n", args[0], done)
			return nil
		},
	}
	object.flags(command)
	return command
}

func (c *cli) rolloutUndoCommand() *cobra.Command {
	var object rolloutObject
	var revision string
	command := &cobra.Command{
		Use:   "undo TYPE/NAME",
		Short: "Give all clusters an earlier revision of an object, at once",
		Long: `undo takes back what a rollout brought, in all clusters at once. The object in the fleet stays as it is: its next change begins
a new rollout; resume rolls it out again as it is.`,
		Example: "  trellisctl rollout undo deployment/web -n shop\n  trellisctl rollout undo deployment/web -n " +
			"shop --to-revision 3",
		Args: oneObject,
		RunE: func(command *cobra.Command, args []string) error {
			fleet, err := c.fleet(command.Context(), object.access)
			if err != nil {
				return err
			}
			var to string
			err = fleet.ControlRollout(command.Context(), args[0], object.namespace, false,
				func(control *workv1alpha2.RolloutControl,
					status *workv1alpha2.RolloutStatus) (*workv1alpha2.RolloutControl, error) {
					wanted, err := rollout.Undo(control, status, revision)
					if err == nil {
						to = wanted.Undo.Revision
					}
					return wanted, err
				})
			if err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s goes back to revision %s in all clusters\n", args[0], to)
			return nil
		},
	}
	object.flags(command)
	command.Flags().StringVar(&revision, "to-revision", "",
		"number or name of the revision, see trellisctl rollout history (default: the one that was complete before)")
	return command
}

// rolloutBinding gives the binding of an object, given as TYPE/NAME. It has a rollout.
func (f *Fleet) rolloutBinding(ctx context.Context, object, namespace string) (bindings.Binding, error) {
	key, err := f.objectKey(object, namespace)
	if err != nil {
		return nil, err
	}
	return f.bindingWithRollout(ctx, key)
}

func (f *Fleet) bindingWithRollout(ctx context.Context, key bindings.TemplateKey) (bindings.Binding, error) {
	b, err := bindings.Get(ctx, f.Client,
		types.NamespacedName{Namespace: key.Namespace, Name: bindings.Name(key.Name, key.Kind)})
	if err != nil {
		return nil, err
	}
	switch {
	case b == nil:
		return nil, f.explainAbsence(ctx, key)
	case b.BindingSpec().Rollout == nil:
		return nil, fmt.Errorf("%s has no staged rollout: its policy (%s) has no spec.rollout", key, policyOf(b))
	case b.BindingStatus().Rollout == nil:
		return nil, fmt.Errorf("the rollout of %s has not begun: the fleet's controllers have not seen it yet; try "+
			"again, or see that they run", key)
	}
	return b, nil
}

// ControlRollout changes what is asked of the rollout of an object, given as TYPE/NAME. Unless it is about rollouts
// that are ahead, too, it is refused while the fleet doesn't know the object as it is: it would be about the rollout
// before.
func (f *Fleet) ControlRollout(ctx context.Context, object, namespace string, ahead bool, change controlChange) error {
	key, err := f.objectKey(object, namespace)
	if err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		b, err := f.bindingWithRollout(ctx, key)
		if err != nil {
			return err
		}
		if !ahead {
			unseen, err := f.unseenChange(ctx, key, b.BindingStatus().Rollout)
			if err != nil {
				return err
			}
			if unseen != "" {
				return fmt.Errorf("%s: %s; try again when they have (trellisctl rollout status)", key, unseen)
			}
		}
		before := b.DeepCopyObject().(bindings.Binding)
		wanted, err := change(b.BindingSpec().RolloutControl, b.BindingStatus().Rollout)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		b.BindingSpec().RolloutControl = wanted
		return f.Client.Patch(ctx, b, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
}

// RolloutStatus prints how far the rollout of an object is, given as TYPE/NAME; with watch until it ends.
func (f *Fleet) RolloutStatus(ctx context.Context, out io.Writer, object, namespace string, watch bool) error {
	key, err := f.objectKey(object, namespace)
	if err != nil {
		return err
	}
	var last string
	show := func(ctx context.Context) (bool, error) {
		b, err := f.bindingWithRollout(ctx, key)
		if err != nil {
			return false, err
		}
		status := b.BindingStatus().Rollout
		pending, err := f.pending(ctx, key, b)
		if err != nil {
			return false, err
		}
		if now := fmt.Sprint(status.Phase, status.Message, pending, status.Waves); now != last {
			if last != "" {
				fmt.Fprintln(out)
			}
			last = now
			if err := printRollout(out, b, pending, time.Now()); err != nil {
				return false, err
			}
		}
		if pending != "" {
			return false, nil
		}
		return ended(b, status)
	}
	if watch {
		return wait.PollUntilContextCancel(ctx, time.Second, true, show)
	}
	_, err = show(ctx)
	if errors.As(err, new(endedEarly)) {
		return nil
	}
	return err
}

// pending says what the status of a rollout doesn't know of yet; empty for nothing. It is not for long, unless the
// fleet's controllers are away.
func (f *Fleet) pending(ctx context.Context, key bindings.TemplateKey, b bindings.Binding) (string, error) {
	unseen, err := f.unseenChange(ctx, key, b.BindingStatus().Rollout)
	if err != nil || unseen != "" {
		return unseen, err
	}
	if asked := rollout.Pending(b.BindingSpec().RolloutControl, b.BindingStatus().Rollout); asked != "" {
		return asked + " was asked for, and the fleet's controllers have not looked at that yet", nil
	}
	return "", nil
}

// unseenChange says that an object was changed after its rollout was looked at. Who may not read the object is told
// nothing; nor is it known of kinds without a generation.
func (f *Fleet) unseenChange(ctx context.Context, key bindings.TemplateKey,
	status *workv1alpha2.RolloutStatus) (string, error) {
	template, err := bindings.GetTemplate(ctx, f.Client, key)
	if apierrors.IsForbidden(err) || err == nil && template == nil {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if template.GetGeneration() <= rollout.SeenGeneration(status) {
		return "", nil
	}
	return fmt.Sprintf("the object was changed (generation %d), and the fleet's controllers have not looked at that "+
		"yet", template.GetGeneration()), nil
}

// endedEarly is a rollout that did not reach all clusters.
type endedEarly struct{ message string }

// Error implements error.
func (e endedEarly) Error() string { return e.message }

// ended tells whether there is nothing more to wait for.
func ended(b bindings.Binding, status *workv1alpha2.RolloutStatus) (bool, error) {
	switch status.Phase {
	case workv1alpha2.RolloutCompleted:
		return true, nil
	case workv1alpha2.RolloutFailed, workv1alpha2.RolloutRolledBack:
		return true, endedEarly{
			fmt.Sprintf("rollout %d of %s %s: %s: %s", status.Number, b.BindingSpec().Resource.Kind,
				b.BindingSpec().Resource.Name, status.Phase, status.Message),
		}
	}
	return false, nil
}

func printRollout(out io.Writer, b bindings.Binding, pending string, now time.Time) error {
	resource, status := b.BindingSpec().Resource, b.BindingStatus().Rollout
	printLine(out, "%s %s", resource.Kind, nameIn(resource.Namespace, resource.Name))
	printLine(out, "Policy:    %s", policyOf(b))
	printLine(out, "Rollout:   %d, %s (%s) for %s", status.Number, status.Phase, status.Reason,
		age(status.Since, now))
	if status.StableRevision == status.UpdateRevision {
		printLine(out, "Revision:  %s", status.UpdateRevision)
	} else {
		printLine(out, "Revision:  %s, of the object; %s before", status.UpdateRevision, status.StableRevision)
	}
	if status.Message != "" {
		printLine(out, "Message:   %s", status.Message)
	}
	if _, err := rollout.NewPlan(b.BindingSpec().Rollout); err != nil {
		printLine(out, "Problem:   correct the policy before the next change: %v", err)
	}
	if pending != "" {
		printLine(out, "But:       %s", pending)
	}
	fmt.Fprintln(out)
	t := newTable(out, "WAVE", "CLUSTERS", "UPDATED", "HEALTHY", "UNAVAILABLE", "STATE")
	for i, wave := range status.Waves {
		t.row(wave.Name, strconv.Itoa(len(wave.Clusters)), strconv.Itoa(int(wave.Updated)),
			strconv.Itoa(int(wave.Healthy)), nonZero(int64(wave.Unavailable)), waveState(status, i))
	}
	return t.Flush()
}

func waveState(status *workv1alpha2.RolloutStatus, index int) string {
	current := int(status.CurrentWave) - 1
	switch {
	case len(status.Waves[index].Clusters) == 0:
		return "no clusters"
	case status.Phase == workv1alpha2.RolloutCompleted, index < current:
		return "done"
	case status.Phase == workv1alpha2.RolloutRolledBack:
		return "rolled back"
	case index > current:
		return "not yet"
	}
	return string(status.Phase)
}

// RolloutHistory prints the revisions of an object, given as TYPE/NAME.
func (f *Fleet) RolloutHistory(ctx context.Context, out io.Writer, object, namespace string) error {
	b, err := f.rolloutBinding(ctx, object, namespace)
	if err != nil {
		return err
	}
	status := b.BindingStatus().Rollout
	t := newTable(out, "NUMBER", "REVISION", "BEGAN", "STATE")
	for _, r := range status.Revisions {
		t.row(strconv.FormatInt(r.Number, 10), r.Revision, r.Time.UTC().Format(time.RFC3339),
			revisionState(status, r.Revision))
	}
	return t.Flush()
}

func revisionState(status *workv1alpha2.RolloutStatus, revision string) string {
	switch {
	case revision == status.StableRevision && revision == status.UpdateRevision:
		return "in all clusters"
	case revision == status.StableRevision && status.Phase == workv1alpha2.RolloutRolledBack:
		return "in all clusters, instead of the object's"
	case revision == status.StableRevision:
		return "in clusters whose wave has not come"
	case revision == status.UpdateRevision && status.Phase == workv1alpha2.RolloutRolledBack:
		return "the object's, rolled back"
	case revision == status.UpdateRevision:
		return "the object's, being rolled out"
	}
	return "kept"
}
