package trellisctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// oneShoot is for commands about the shoot that the argument names, or the target.
var oneShoot = optional(exactlyOne("shoot"))

// shootCommands are those that create, change and delete shoots: VERB shoot [NAME].
func (c *cli) shootCommands() []*cobra.Command {
	verb := func(short string, command *cobra.Command, name string) *cobra.Command {
		parent := &cobra.Command{Use: name, Short: short, Example: command.Example}
		parent.AddCommand(command)
		return parent
	}
	commands := []*cobra.Command{
		verb("Create a shoot", c.createShootCommand(), "create"),
		verb("Edit a shoot in an editor", c.editShootCommand(), "edit"),
		verb("Change how many machines a pool of a shoot has", c.scaleShootCommand(), "scale"),
		verb("Update the versions of a shoot", c.upgradeShootCommand(), "upgrade"),
		verb("Delete a shoot", c.deleteShootCommand(), "delete"),
		c.rotateCommand(), c.waitCommand(),
	}
	for _, operation := range shootOperations {
		commands = append(commands, verb(operation.short, c.operationCommand(operation), operation.name))
	}
	return commands
}

// shootSession connects to the garden for the shoot that is named, or else targeted.
func (c *cli) shootSession(arguments []string) (*Session, error) {
	if len(arguments) > 0 {
		if err := takeName("shoot", arguments[0], &c.flags.Shoot); err != nil {
			return nil, err
		}
	}
	return c.connect()
}

// takeName puts what an argument names where the flag of its level would be.
func takeName(level, argument string, flag *string) error {
	switch {
	case argument == "":
		return fmt.Errorf("the name of the %s is empty", level)
	case *flag != "" && *flag != argument:
		return fmt.Errorf("%s %q is given, and --%s %q: leave out one of them", level, argument, level, *flag)
	}
	*flag = argument
	return nil
}

// changeShoot reads the shoot of the target, changes it, and writes what has changed and nothing else. When somebody
// else wrote it meanwhile, all of that is done again with what is there now.
func (s *Session) changeShoot(ctx context.Context,
	change func(*gardencorev1beta1.Shoot) error) (before, after *gardencorev1beta1.Shoot, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		after, err = s.Shoot(ctx)
		if err != nil {
			return err
		}
		before = after.DeepCopy()
		if err := change(after); err != nil {
			return err
		}
		if err := s.client.Patch(ctx, after,
			client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("changing shoot %s/%s: %w", before.Namespace, before.Name, err)
		}
		return nil
	})
	if apierrors.IsConflict(err) {
		return nil, nil, fmt.Errorf("others write the shoot all the time, try again in a moment: %w", err)
	}
	if err != nil {
		return nil, nil, err
	}
	return before, after, nil
}

// profileOf reads the cloud profile that a shoot is of. Of a namespaced one it is the merged result.
func (s *Session) profileOf(ctx context.Context,
	shoot *gardencorev1beta1.Shoot) (*gardencorev1beta1.CloudProfileSpec, error) {
	reference := gardencorev1beta1.CloudProfileReference{Name: deref(shoot.Spec.CloudProfileName)}
	if shoot.Spec.CloudProfile != nil {
		reference = *shoot.Spec.CloudProfile
	}
	return s.profile(ctx, shoot.Namespace, reference)
}

func (s *Session) profile(ctx context.Context, namespace string,
	reference gardencorev1beta1.CloudProfileReference) (*gardencorev1beta1.CloudProfileSpec, error) {
	if reference.Kind == gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile {
		profile := &gardencorev1beta1.NamespacedCloudProfile{}
		err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reference.Name}, profile)
		if err != nil {
			return nil, explain(err, "namespaced cloud profile", reference.Name,
				"kubectl -n "+namespace+" get namespacedcloudprofiles")
		}
		if profile.Status.CloudProfileSpec == nil {
			return nil, fmt.Errorf("namespaced cloud profile %s/%s has not been merged with its parent yet; try "+
				"again in a moment", namespace, reference.Name)
		}
		return profile.Status.CloudProfileSpec, nil
	}
	profile := &gardencorev1beta1.CloudProfile{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: reference.Name}, profile); err != nil {
		return nil, explain(err, "cloud profile", reference.Name, "kubectl get cloudprofiles")
	}
	return &profile.Spec, nil
}

// waitsForMaintenance tells, in words, when a change of the specification begins that waits for the maintenance window;
// empty for one that has begun.
func waitsForMaintenance(before, after *gardencorev1beta1.Shoot) string {
	maintenance := after.Spec.Maintenance
	if maintenance == nil || !ptr.Deref(maintenance.ConfineSpecUpdateRollout, false) ||
		after.Generation != before.Generation || maintenance.TimeWindow == nil {
		return ""
	}
	return fmt.Sprintf("from %s to %s", maintenance.TimeWindow.Begin, maintenance.TimeWindow.End)
}

// awaitChange waits for a change of a shoot if that is wanted, and if it has begun.
func (s *Session) awaitChange(command *cobra.Command, w waiting, before, after *gardencorev1beta1.Shoot) error {
	if window := waitsForMaintenance(before, after); window != "" {
		tell(command)("Changes of shoot %s/%s wait for its maintenance, daily %s; to begin now: trellisctl "+
			"reconcile shoot %s", after.Namespace, after.Name, oneLine(window), s.inCommands(after))
		return nil
	}
	return s.await(command, w, s.goalOf(after))
}
