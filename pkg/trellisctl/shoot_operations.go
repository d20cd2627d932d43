package trellisctl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// shootOperation is a verb that asks for an operation by its annotation.
type shootOperation struct{ name, short, long string }

var shootOperations = []shootOperation{
	{
		gardencorev1beta1.GardenerOperationReconcile, "Bring about what a shoot asks for, now",
		"Has gardenlet look at the whole shoot again, and bring about what it asks for. Changes that wait for the " +
			"maintenance window begin now.",
	},
	{
		gardencorev1beta1.GardenerOperationRetry, "Try the operation of a shoot again that has failed",
		"Tries again what has failed for good. What fails and is tried again by itself needs no retry.",
	},
	{
		gardencorev1beta1.GardenerOperationMaintain, "Maintain a shoot now",
		"Does at once what the maintenance window is for: updates of Kubernetes and of machine images, rotations " +
			"that are due, and operations that wait for it.",
	},
}

func (c *cli) operationCommand(operation shootOperation) *cobra.Command {
	var w waiting
	command := &cobra.Command{
		Use: "shoot [NAME]", Short: operation.short, Long: operation.long, Args: oneShoot,
		ValidArgsFunction: c.completeShoot(),
		Example: fmt.Sprintf("  trellisctl %s shoot member1 --project demo\n  trellisctl %s shoot --wait",
			operation.name, operation.name),
		RunE: func(command *cobra.Command, arguments []string) error {
			session, err := c.shootSession(arguments)
			if err != nil {
				return err
			}
			shoot, err := session.askFor(command.Context(), operation.name)
			if err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "Shoot %s/%s is asked to %s\n", shoot.Namespace, shoot.Name,
				operation.name)
			goal := session.goalOf(shoot)
			goal.Operations = []string{operation.name}
			return session.await(command, w, goal)
		},
	}
	w.flags(command)
	return command
}

// askFor adds an operation to those that the targeted shoot is asked for.
func (s *Session) askFor(ctx context.Context, operation string) (*gardencorev1beta1.Shoot, error) {
	_, after, err := s.changeShoot(ctx, func(shoot *gardencorev1beta1.Shoot) error {
		return addOperation(shoot, operation, s.inCommands(shoot))
	})
	return after, err
}

// addOperation adds an operation to those that a shoot is asked for, or tells what has to be done before.
func addOperation(shoot *gardencorev1beta1.Shoot, operation, inCommands string) error {
	name := shoot.Namespace + "/" + shoot.Name
	if problem := operationProblem(shoot, operation, inCommands); problem != "" {
		return fmt.Errorf("shoot %s: %s %s", name, operation, problem)
	}
	asked := gardencorev1beta1.SplitOperations(shoot.Annotations[gardencorev1beta1.GardenerOperation])
	if slices.Contains(asked, operation) {
		return nil
	}
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, gardencorev1beta1.GardenerOperation,
		strings.Join(append(asked, operation), ";"))
	return nil
}

// operationProblem tells why nobody would carry out an operation now, and what to do; empty if somebody would.
func operationProblem(shoot *gardencorev1beta1.Shoot, operation, inCommands string) string {
	last := shoot.Status.LastOperation
	asked := gardencorev1beta1.SplitOperations(shoot.Annotations[gardencorev1beta1.GardenerOperation])
	isRetry := operation == gardencorev1beta1.GardenerOperationRetry
	switch {
	case shoot.Annotations[gardencorev1beta1.ShootIgnore] == "true":
		return "would wait: annotation " + gardencorev1beta1.ShootIgnore + " has the shoot left alone; remove it first"
	case last == nil && isRetry:
		return "is for what has failed; nothing has begun yet, see: trellisctl wait shoot " + inCommands
	case last == nil:
		return "is possible once the first operation has begun; see: trellisctl wait shoot " + inCommands
	case isRetry && last.State != gardencorev1beta1.LastOperationStateFailed:
		return fmt.Sprintf("is for what has failed; this is %s: trellisctl reconcile shoot %s",
			oneLine(lastOperation(last)), inCommands)
	case isRetry && slices.ContainsFunc(asked, func(other string) bool { return other != operation }):
		return fmt.Sprintf("is only done alone, and %s waits; take it out of annotation %s first",
			oneLine(strings.Join(asked, ", ")), gardencorev1beta1.GardenerOperation)
	case !isRetry && operation != gardencorev1beta1.GardenerOperationMaintain &&
		last.State == gardencorev1beta1.LastOperationStateFailed:
		return fmt.Sprintf("would wait, as %s has failed; first: trellisctl retry shoot %s", oneLine(string(last.Type)),
			inCommands)
	}
	return gardencorev1beta1.OperationProblem(shoot, operation)
}
