package trellisctl

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// sleepPoll is how often a shoot is looked at that falls asleep or wakes up.
const sleepPoll = time.Second

func (c *cli) hibernateCommand() *cobra.Command {
	return c.sleepCommand("hibernate", "Put a shoot to sleep: no machines, no control plane; what it stores is kept",
		true)
}

func (c *cli) wakeUpCommand() *cobra.Command {
	return c.sleepCommand("wakeup", "Wake up a shoot that is hibernated", false)
}

func (c *cli) sleepCommand(name, short string, enabled bool) *cobra.Command {
	var timeout time.Duration
	command := &cobra.Command{
		Use: name, Short: short, Args: noArguments,
		Example: fmt.Sprintf("  trellisctl %s --project demo --shoot member2\n  trellisctl %s --project demo "+
			"--shoot member2 --wait 15m", name, name),
		RunE: func(command *cobra.Command, _ []string) error {
			session, err := c.connect()
			if err != nil {
				return err
			}
			shoot, err := session.Hibernate(command.Context(), enabled)
			if err != nil || timeout == 0 {
				return orTell(err, command.OutOrStdout(), shoot)
			}
			shoot, err = session.waitForSleep(command.Context(), shoot, enabled, timeout)
			return orTell(err, command.OutOrStdout(), shoot)
		},
	}
	command.Flags().DurationVar(&timeout, "wait", 0, "wait for as long until it is done")
	return command
}

// orTell returns the error, or says how awake the shoot is.
func orTell(err error, out io.Writer, shoot *gardencorev1beta1.Shoot) error {
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Shoot %s/%s is %s\n", shoot.Namespace, shoot.Name, wakefulness(shoot))
	return nil
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

// waitForSleep waits until the shoot is as awake as it should be.
func (s *Session) waitForSleep(ctx context.Context, shoot *gardencorev1beta1.Shoot, enabled bool,
	timeout time.Duration) (*gardencorev1beta1.Shoot, error) {
	err := wait.PollUntilContextTimeout(ctx, sleepPoll, timeout, true, func(ctx context.Context) (bool, error) {
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(shoot), shoot); err != nil {
			return false, err
		}
		return shoot.Status.IsHibernated == enabled && shoot.Status.ObservedGeneration == shoot.Generation, nil
	})
	if wait.Interrupted(err) {
		return nil, fmt.Errorf("shoot %s/%s is still %s after %s: %s", shoot.Namespace, shoot.Name, wakefulness(shoot),
			timeout, lastOperation(shoot.Status.LastOperation))
	}
	return shoot, err
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
