package trellisctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
)

// heldSelection says which deletions a command is about.
type heldSelection struct {
	cluster, namespace string
	all                bool
}

func (s *heldSelection) flags(command *cobra.Command) {
	command.Flags().StringVar(&s.cluster, "cluster", "", "only deletions in this member")
	command.Flags().StringVarP(&s.namespace, "namespace", "n", "", "only objects of this namespace")
	command.Flags().BoolVar(&s.all, "all", false, "all deletions that are held")
}

func (c *cli) deletionsCommand() *cobra.Command {
	var access fleetAccess
	var selection heldSelection
	command := &cobra.Command{
		Use:   "deletions",
		Short: "List the deletions in members that wait for a confirmation",
		Long: `When many objects are to be deleted in a member at once (a policy, a namespace or a member was removed), they are held until somebody
confirms that this is meant. To take a deletion back, make again what was removed, or keep the objects: they stay in the members, and
the fleet takes them over when a policy selects them again.`,
		Example: `  trellisctl deletions --project demo --shoot fleet
  trellisctl deletions confirm --cluster member1
  trellisctl deletions keep --namespace shop`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			fleet, err := c.fleet(command.Context(), access)
			if err != nil {
				return err
			}
			return fleet.ListHeld(command.Context(), command.OutOrStdout(), selection, time.Now())
		},
	}
	access.flags(command)
	selection.flags(command)
	command.AddCommand(
		c.answerCommand("confirm", "Let the objects be deleted", workv1alpha1.ConfirmDeletionYes),
		c.answerCommand("keep", "Leave the objects in the members as they are", workv1alpha1.ConfirmDeletionKeep),
	)
	return command
}

func (c *cli) answerCommand(name, short, answer string) *cobra.Command {
	var access fleetAccess
	var selection heldSelection
	command := &cobra.Command{
		Use: name, Short: short, Args: noArguments,
		Example: "  trellisctl deletions " + name + " --cluster member1\n  trellisctl deletions " + name + " --all",
		RunE: func(command *cobra.Command, _ []string) error {
			if selection == (heldSelection{}) {
				return errors.New("say which deletions: --cluster, --namespace, or --all")
			}
			fleet, err := c.fleet(command.Context(), access)
			if err != nil {
				return err
			}
			return fleet.AnswerHeld(command.Context(), command.OutOrStdout(), selection, answer)
		},
	}
	access.flags(command)
	selection.flags(command)
	return command
}

// held finds the Works whose deletion waits for a confirmation.
func (f *Fleet) held(ctx context.Context, selection heldSelection) ([]workv1alpha1.Work, error) {
	var list workv1alpha1.WorkList
	var options []client.ListOption
	if selection.cluster != "" {
		options = append(options, client.InNamespace(clusterv1alpha1.ExecutionNamespace(selection.cluster)))
	}
	if err := f.Client.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("listing Works: %w", err)
	}
	var result []workv1alpha1.Work
	for i := range list.Items {
		if list.Items[i].DeletionHeld() &&
			(selection.namespace == "" || objectOf(&list.Items[i]).GetNamespace() == selection.namespace) {
			result = append(result, list.Items[i])
		}
	}
	return result, nil
}

// objectOf gives the object that a Work is about; an empty one if that cannot be read.
func objectOf(work *workv1alpha1.Work) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if len(work.Spec.Workload.Manifests) > 0 && object.UnmarshalJSON(work.Spec.Workload.Manifests[0].Raw) == nil {
		return object
	}
	return &unstructured.Unstructured{Object: map[string]any{}}
}

// ListHeld prints the deletions that wait for a confirmation.
func (f *Fleet) ListHeld(ctx context.Context, out io.Writer, selection heldSelection, now time.Time) error {
	works, err := f.held(ctx, selection)
	if err != nil {
		return err
	}
	if len(works) == 0 {
		return f.tellNoneHeld(ctx, out, selection)
	}
	t := newTable(out, "CLUSTER", "KIND", "NAMESPACE", "NAME", "ASKED FOR")
	for i := range works {
		object := objectOf(&works[i])
		cluster, _ := clusterv1alpha1.ClusterOf(works[i].Namespace)
		t.row(cluster, object.GetKind(), object.GetNamespace(), object.GetName(),
			age(*works[i].DeletionTimestamp, now)+" ago")
	}
	return t.Flush()
}

// tellNoneHeld finds out a mistyped member.
func (f *Fleet) tellNoneHeld(ctx context.Context, out io.Writer, selection heldSelection) error {
	if selection.cluster != "" {
		if err := f.Client.Get(ctx, client.ObjectKey{Name: selection.cluster}, &clusterv1alpha1.Cluster{}); err != nil {
			return explainMember(err, selection.cluster)
		}
	}
	fmt.Fprintln(out, "No deletion waits for a confirmation")
	return nil
}

// AnswerHeld confirms deletions, or has the objects kept.
func (f *Fleet) AnswerHeld(ctx context.Context, out io.Writer, selection heldSelection, answer string) error {
	works, err := f.held(ctx, selection)
	if err != nil {
		return err
	}
	for i := range works {
		before := works[i].DeepCopy()
		if works[i].Annotations == nil {
			works[i].Annotations = map[string]string{}
		}
		works[i].Annotations[workv1alpha1.ConfirmDeletionAnnotation] = answer
		if err := f.Client.Patch(ctx, &works[i], client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("annotating Work %s: %w", client.ObjectKeyFromObject(before), err)
		}
	}
	if len(works) == 0 {
		return f.tellNoneHeld(ctx, out, selection)
	}
	verb := map[string]string{
		workv1alpha1.ConfirmDeletionYes:  "confirmed",
		workv1alpha1.ConfirmDeletionKeep: "taken back; the objects stay in the members",
	}[answer]
	fmt.Fprintf(out, "%s %s\n", counted(len(works), "deletion"), verb)
	return nil
}
