package trellisctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	stepStart    = "start"
	stepComplete = "complete"
)

// rotation is what can be rotated, with the operations that do so.
type rotation struct {
	name, short string
	start       string
	// startWithoutRollout leaves machines alone; empty where machines don't matter.
	startWithoutRollout string
	// complete is the second half; empty where there is none.
	complete string
}

var rotations = []rotation{
	{
		"credentials", "All credentials of a shoot", gardencorev1beta1.OperationRotateCredentialsStart,
		gardencorev1beta1.OperationRotateCredentialsStartWithoutWorkersRollout,
		gardencorev1beta1.OperationRotateCredentialsComplete,
	},
	{
		"ca", "The certificate authorities of a shoot", gardencorev1beta1.OperationRotateCAStart,
		gardencorev1beta1.OperationRotateCAStartWithoutWorkersRollout, gardencorev1beta1.OperationRotateCAComplete,
	},
	{
		"serviceaccount-key", "The key that signs tokens of service accounts",
		gardencorev1beta1.OperationRotateServiceAccountKeyStart,
		gardencorev1beta1.OperationRotateServiceAccountKeyStartWithoutWorkersRollout,
		gardencorev1beta1.OperationRotateServiceAccountKeyComplete,
	},
	{
		"etcd-encryption-key", "The key for encryption at rest",
		gardencorev1beta1.OperationRotateETCDEncryptionKeyStart, "",
		gardencorev1beta1.OperationRotateETCDEncryptionKeyComplete,
	},
	{
		"ssh-keypair", "The key pair that opens the machines", gardencorev1beta1.ShootOperationRotateSSHKeypair, "", "",
	},
}

// oneStepSince is the minor version of Kubernetes from which on the key for encryption at rest is replaced in one step.
const oneStepSince = 34

// operation is what a step of a rotation is for a version of Kubernetes.
func (r rotation) operation(step, version string, withoutRollout bool) (string, error) {
	start, complete := r.start, r.complete
	if parsed, err := semver.NewVersion(version); r.start == gardencorev1beta1.OperationRotateETCDEncryptionKeyStart &&
		(err != nil || parsed.Minor() >= oneStepSince) {
		start, complete = gardencorev1beta1.OperationRotateETCDEncryptionKey, ""
	}
	switch {
	case step == stepComplete && complete == "":
		return "", fmt.Errorf("%s is replaced in one step: there is nothing to complete after `start`", r.name)
	case step == stepComplete:
		return complete, nil
	case withoutRollout && r.startWithoutRollout == "":
		return "", fmt.Errorf("--without-workers-rollout: no machines are replaced for %s; leave it out", r.name)
	case withoutRollout:
		return r.startWithoutRollout, nil
	}
	return start, nil
}

func (c *cli) rotateCommand() *cobra.Command {
	parent := &cobra.Command{
		Use:   "rotate",
		Short: "Replace credentials of shoots, while they run",
		Long: `Certificate authorities and the key for tokens of service accounts are replaced in two halves. After start, old and
new are trusted; fetch new kubeconfigs then. After complete, the old ones are worthless. Other credentials are replaced at once.`,
		Example: `  trellisctl rotate ca start member1 --project demo --wait
  trellisctl rotate status member1
  trellisctl rotate ca complete member1 --wait
  trellisctl rotate credentials start --all --project demo`,
	}
	for _, one := range rotations {
		parent.AddCommand(c.rotateOneCommand(one))
	}
	parent.AddCommand(c.rotateWorkersCommand(), c.rotateStatusCommand())
	return parent
}

// rotating is one call of rotate.
type rotating struct {
	waiting
	all bool
	// operation is that which a shoot is asked for.
	operation func(*gardencorev1beta1.Shoot) (string, error)
}

func (r *rotating) flags(command *cobra.Command) {
	command.Flags().BoolVar(&r.all, "all", false, "all shoots of the project, one after another")
	r.waiting.flags(command)
}

func (c *cli) rotateOneCommand(one rotation) *cobra.Command {
	var r rotating
	var withoutRollout bool
	steps := []string{stepStart, stepComplete}
	if one.complete == "" {
		steps = []string{stepStart}
	}
	command := &cobra.Command{
		Use: one.name + " " + strings.Join(steps, "|") + " [NAME]", Short: one.short,
		Example: fmt.Sprintf("  trellisctl rotate %s start member1 --project demo", one.name),
		Args:    stepAndShoot(steps), ValidArgsFunction: c.completeStepAndShoot(steps),
		RunE: func(command *cobra.Command, arguments []string) error {
			r.operation = func(shoot *gardencorev1beta1.Shoot) (string, error) {
				return one.operation(arguments[0], shoot.Spec.Kubernetes.Version, withoutRollout)
			}
			return c.rotate(command, r, arguments[1:])
		},
	}
	if one.startWithoutRollout != "" {
		command.Flags().BoolVar(&withoutRollout, "without-workers-rollout", false,
			"leave machines alone; replace them later by rotate workers")
	}
	r.flags(command)
	return command
}

// stepAndShoot takes a step, and a shoot unless that is targeted.
func stepAndShoot(steps []string) cobra.PositionalArgs {
	return func(_ *cobra.Command, arguments []string) error {
		if len(arguments) == 0 || len(arguments) > 2 || !slices.Contains(steps, arguments[0]) {
			return fmt.Errorf("say %s, and name the shoot unless it is the target", strings.Join(steps, " or "))
		}
		return nil
	}
}

func (c *cli) rotateWorkersCommand() *cobra.Command {
	var r rotating
	var pools []string
	command := &cobra.Command{
		Use: "workers [NAME]", Short: "Machines that a start without rollout spared",
		Example: "  trellisctl rotate workers member1 --pools pool,other --wait",
		Args:    oneShoot, ValidArgsFunction: c.completeShoot(),
		RunE: func(command *cobra.Command, arguments []string) error {
			r.operation = func(*gardencorev1beta1.Shoot) (string, error) {
				return gardencorev1beta1.OperationRotateRolloutWorkers + "=" + strings.Join(pools, ","), nil
			}
			return c.rotate(command, r, arguments)
		},
	}
	command.Flags().StringSliceVar(&pools, "pools", []string{"*"}, "pools whose machines are replaced")
	completeFlag(command, "pools", c.completePools)
	r.flags(command)
	return command
}

func (c *cli) rotateStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status [NAME]", Short: "How far rotations of a shoot are",
		Example: "  trellisctl rotate status member1 --project demo",
		Args:    oneShoot, ValidArgsFunction: c.completeShoot(),
		RunE: func(command *cobra.Command, arguments []string) error {
			session, err := c.shootSession(arguments)
			if err != nil {
				return err
			}
			shoot, err := session.Shoot(command.Context())
			if err != nil {
				return err
			}
			return printRotationStatus(command.OutOrStdout(), shoot, session.inCommands(shoot), time.Now())
		},
	}
}

// rotate asks one shoot, or all of the project, for an operation.
func (c *cli) rotate(command *cobra.Command, r rotating, arguments []string) error {
	if !r.all {
		session, err := c.shootSession(arguments)
		if err != nil {
			return err
		}
		return session.rotate(command, r)
	}
	if len(arguments) > 0 || c.flags.Shoot != "" {
		return errors.New("--all is all shoots of the project: leave out the shoot")
	}
	session, err := c.connect()
	if err != nil {
		return err
	}
	names, err := session.shootsOfTheProject(command.Context())
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		one := *session
		one.Target.Shoot = name
		if err := one.rotate(command, r); err != nil {
			errs = append(errs, err)
		}
		if err := command.Context().Err(); err != nil {
			return errors.Join(errs...)
		}
	}
	return errors.Join(errs...)
}

// shootsOfTheProject are the names of all shoots of the targeted project.
func (s *Session) shootsOfTheProject(ctx context.Context) ([]string, error) {
	if s.Target.Project == "" {
		return nil, errors.New("--all is all shoots of a project: add --project NAME")
	}
	shoots, err := s.shootsOfTarget(ctx, false)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range shoots {
		if shoots[i].DeletionTimestamp == nil {
			names = append(names, shoots[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// rotate asks the targeted shoot for an operation, and shows how far its rotations are afterwards.
func (s *Session) rotate(command *cobra.Command, r rotating) error {
	shoot, asked, underWay, err := s.askToRotate(command.Context(), r.operation)
	if err != nil {
		return err
	}
	goal := s.goalOf(shoot)
	if underWay != "" {
		fmt.Fprintf(command.OutOrStdout(), "Shoot %s/%s does %s already: %s\n", shoot.Namespace, shoot.Name, asked,
			underWay)
	} else {
		fmt.Fprintf(command.OutOrStdout(), "Shoot %s/%s is asked for %s\n", shoot.Namespace, shoot.Name, asked)
		goal.Operations = []string{asked}
	}
	if err := s.await(command, r.waiting, goal); err != nil {
		return err
	}
	if !r.wait {
		return nil
	}
	if err := s.client.Get(command.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil {
		return fmt.Errorf("reading shoot %s/%s again: %w", shoot.Namespace, shoot.Name, err)
	}
	return printRotationStatus(command.OutOrStdout(), shoot, s.inCommands(shoot), time.Now())
}
