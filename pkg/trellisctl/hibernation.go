package trellisctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func (c *cli) hibernateCommand() *cobra.Command {
	return c.sleepCommand("hibernate", "Put a shoot to sleep: no machines, no control plane; what it stores is kept",
		true)
}

func (c *cli) wakeUpCommand() *cobra.Command {
	return c.sleepCommand("wakeup", "Wake up a shoot that is hibernated", false)
}

// sleepCommand is VERB shoot [NAME]. The verb alone is about the target, as it was before there were names.
func (c *cli) sleepCommand(name, short string, enabled bool) *cobra.Command {
	verb := func(use string, arguments cobra.PositionalArgs) *cobra.Command {
		var w waiting
		command := &cobra.Command{
			Use: use, Short: short, Args: arguments,
			Example: fmt.Sprintf("  trellisctl %s shoot member2 --project demo\n  trellisctl %s shoot member2 --wait "+
				"--timeout 15m", name, name),
			RunE: func(command *cobra.Command, arguments []string) error {
				session, err := c.shootSession(arguments)
				if err != nil {
					return err
				}
				return session.sleep(command, w, enabled)
			},
		}
		w.flags(command)
		return command
	}
	parent := verb(name, noArguments)
	named := verb("shoot [NAME]", oneShoot)
	named.ValidArgsFunction = c.completeShoot()
	parent.AddCommand(named)
	return parent
}

// sleep puts the targeted shoot to sleep, or wakes it up, and waits for it if that is wanted.
func (s *Session) sleep(command *cobra.Command, w waiting, enabled bool) error {
	shoot, err := s.Hibernate(command.Context(), enabled)
	if err != nil {
		return err
	}
	fmt.Fprintf(command.OutOrStdout(), "Shoot %s/%s is %s\n", shoot.Namespace, shoot.Name, wakefulness(shoot))
	goal := s.goalOf(shoot)
	goal.Reached = func(current *gardencorev1beta1.Shoot) bool { return current.Status.IsHibernated == enabled }
	return s.await(command, w, goal)
}

// Hibernate puts the targeted shoot to sleep, or wakes it up.
func (s *Session) Hibernate(ctx context.Context, enabled bool) (*gardencorev1beta1.Shoot, error) {
	shoot, err := s.Shoot(ctx)
	if err != nil {
		return nil, err
	}
	patch := fmt.Appendf(nil, `{"spec":{"hibernation":{"enabled":%t}}}`, enabled)
	if err := s.client.Patch(ctx, shoot, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return nil, fmt.Errorf("setting spec.hibernation.enabled of shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	return shoot, nil
}

// wakefulness says in a word or two how awake a shoot is.
func wakefulness(shoot *gardencorev1beta1.Shoot) string {
	wanted := shoot.Spec.Hibernation != nil && shoot.Spec.Hibernation.Enabled != nil && *shoot.Spec.Hibernation.Enabled
	switch {
	case wanted && shoot.Status.IsHibernated:
		return "hibernated"
	case wanted:
		return "hibernating"
	case shoot.Status.IsHibernated:
		return "waking up"
	}
	return "awake"
}
