package trellisctl

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func (c *cli) deleteShootCommand() *cobra.Command {
	var w waiting
	var confirmed string
	command := &cobra.Command{
		Use:   "shoot NAME",
		Short: "Delete a shoot, with all that is in it",
		Long: `Says what will be lost, asks for the name of the shoot, confirms the deletion by its annotation, and deletes
it. Scripts confirm by --yes-delete NAME.

On a terminal it waits then, and shows how far the deletion is; elsewhere it does so with --wait. With --wait=false it
waits nowhere. The deletion goes on without the command.`,
		Example: `  trellisctl delete shoot member1 --project demo
  trellisctl delete shoot member1 --project demo --yes-delete member1`,
		Args: exactlyOne("shoot"), ValidArgsFunction: c.completeShoot(),
		RunE: func(command *cobra.Command, arguments []string) error {
			session, err := c.shootSession(arguments)
			if err != nil {
				return err
			}
			shoot, err := session.Shoot(command.Context())
			if err != nil {
				return err
			}
			if shoot.DeletionTimestamp == nil {
				if err := confirmDeletion(command, shoot, confirmed); err != nil {
					return err
				}
			}
			goal := session.goalOf(shoot)
			if err := session.deleteShoot(command, shoot, &goal.Generation); err != nil {
				return err
			}
			goal.Gone = true
			return session.await(command, w.onTerminals(command), goal)
		},
	}
	command.Flags().StringVar(&confirmed, "yes-delete", "", "the name of the shoot once more: do not ask")
	w.flagsFor(command, false, defaultTimeout, "it is gone, and show how far it is (default: on a terminal)")
	return command
}

// confirmDeletion has somebody say which shoot is to be deleted, after being told what is lost.
func confirmDeletion(command *cobra.Command, shoot *gardencorev1beta1.Shoot, confirmed string) error {
	if confirmed != "" {
		return sameName(shoot, confirmed)
	}
	out := command.ErrOrStderr()
	fmt.Fprintln(out, whatIsLost(shoot))
	if terminalOf(command.InOrStdin()) == nil {
		return fmt.Errorf("nobody can be asked here: confirm the deletion by --yes-delete %s", shoot.Name)
	}
	return askForName(out, command.InOrStdin(), shoot)
}

func askForName(out io.Writer, in io.Reader, shoot *gardencorev1beta1.Shoot) error {
	fmt.Fprintf(out, "To delete it for good, type the name of the shoot: ")
	typed, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the name: %w", err)
	}
	return sameName(shoot, strings.TrimSpace(typed))
}

func sameName(shoot *gardencorev1beta1.Shoot, typed string) error {
	if typed != shoot.Name {
		return fmt.Errorf("%q is not the name of shoot %s/%s; nothing was deleted", typed, shoot.Namespace, shoot.Name)
	}
	return nil
}

// whatIsLost tells people what goes with a shoot. It is all in one paragraph, whatever its fields hold.
func whatIsLost(shoot *gardencorev1beta1.Shoot) string {
	purpose := ""
	if shoot.Spec.Purpose != nil {
		purpose = ", purpose " + oneLine(string(*shoot.Spec.Purpose))
	}
	lost := []string{"its API with all objects and their backups"}
	if pools := shoot.Spec.Provider.Workers; len(pools) > 0 {
		names := make([]string, len(pools))
		for i, pool := range pools {
			names[i] = oneLine(pool.Name)
		}
		lost = append(lost, fmt.Sprintf("%s machines (%s) with their disks, volumes and load balancers", nodes(shoot),
			strings.Join(names, ", ")))
	}
	if slices.ContainsFunc(shoot.Spec.Extensions,
		func(extension gardencorev1beta1.Extension) bool { return extension.Type == "federation" }) {
		lost = append(lost, "the fleet with its policies")
	}
	lost = append(lost, "all kubeconfigs")
	return fmt.Sprintf("Shoot %s/%s (Kubernetes %s%s, %s, created %s) loses: %s", shoot.Namespace, shoot.Name,
		oneLine(shoot.Spec.Kubernetes.Version), purpose, wakefulness(shoot),
		shoot.CreationTimestamp.UTC().Format("2006-01-02"), strings.Join(lost, "; "))
}

// deleteShoot confirms the deletion and deletes the shoot that was looked at, and no other one of its name. The
// generation becomes that of the deletion.
func (s *Session) deleteShoot(command *cobra.Command, shoot *gardencorev1beta1.Shoot, generation *int64) error {
	ctx, out := command.Context(), command.OutOrStdout()
	name := shoot.Namespace + "/" + shoot.Name
	if shoot.DeletionTimestamp != nil {
		fmt.Fprintf(out, "Shoot %s is being deleted already\n", name)
		return nil
	}
	_, confirmed, err := s.changeShoot(ctx, func(current *gardencorev1beta1.Shoot) error {
		if current.UID != shoot.UID {
			return fmt.Errorf("shoot %s was deleted meanwhile, and there is another one of its name; look at "+
				"that first", name)
		}
		metav1.SetMetaDataAnnotation(&current.ObjectMeta, gardencorev1beta1.ConfirmationDeletion, "true")
		return nil
	})
	if err != nil {
		return err
	}
	err = s.client.Delete(ctx, confirmed, client.Preconditions{UID: &shoot.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting shoot %s, which annotation %s confirms by now: %w", name,
			gardencorev1beta1.ConfirmationDeletion, err)
	}
	// The write that begins the deletion makes the next generation.
	*generation = confirmed.Generation + 1
	fmt.Fprintf(out, "Shoot %s is being deleted\n", name)
	return nil
}
