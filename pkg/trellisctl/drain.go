package trellisctl

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/failover"
	"github.com/trellis-garden/trellis/pkg/federation/policies"
)

func (c *cli) cordonCommand() *cobra.Command {
	return c.taintCommand("cordon NAME", "Keep new objects away from a member",
		"cordon taints a member, so that nothing new is placed there unless a policy tolerates it. What is there "+
			"stays.",
		corev1.TaintEffectNoSchedule, true)
}

func (c *cli) uncordonCommand() *cobra.Command {
	return c.taintCommand("uncordon NAME", "Let a member take new objects again",
		"uncordon takes back what cordon and drain did. What was moved away comes back as policies and their "+
			"fail-back say.", "", false)
}

func (c *cli) drainCommand() *cobra.Command {
	return c.taintCommand("drain NAME", "Move a member's objects to others",
		`drain taints a member, so that nothing new is placed there, and what is there moves to other members as far as policies allow it:
each old copy is removed when its replacement is healthy. Objects whose policy tolerates the taint stay, and so do those that fit
nowhere else. drain waits until no Works are left in the member, or until --timeout is over, and then says what stays.`,
		corev1.TaintEffectNoExecute, true)
}

// taintCommand sets the taint with that effect, or removes it.
func (c *cli) taintCommand(use, short, long string, effect corev1.TaintEffect, set bool) *cobra.Command {
	var access fleetAccess
	var w waiting
	verb, _, _ := strings.Cut(use, " ")
	command := &cobra.Command{
		Use: use, Short: short, Long: long,
		Example: fmt.Sprintf("  trellisctl %s edge1 --project demo --shoot fleet", verb), Args: oneMember,
		ValidArgsFunction: onlyFirst(c.completeMembers(&access)),
		RunE: func(command *cobra.Command, arguments []string) error {
			fleet, err := c.fleet(command.Context(), access)
			if err != nil {
				return err
			}
			if err := fleet.setUnschedulable(command.Context(), arguments[0], effect, set); err != nil {
				return err
			}
			say := func(state string) { fmt.Fprintf(command.OutOrStdout(), "member %s: %s\n", arguments[0], state) }
			if effect == corev1.TaintEffectNoExecute {
				say("draining")
				if !w.wait {
					return nil
				}
				if err := fleet.waitDrained(command.Context(), arguments[0], w.timeout, tell(command)); err != nil {
					return err
				}
			}
			say(verb + "ed")
			return nil
		},
	}
	access.flags(command)
	if effect == corev1.TaintEffectNoExecute {
		w.flagsFor(command, true, 10*time.Minute, "the member is drained")
	}
	return command
}

// setUnschedulable changes the taints that keep objects away; those with other keys stay. Draining also cordons. What
// somebody else writes meanwhile is kept, and a fleet that has much to do is asked again.
func (f *Fleet) setUnschedulable(ctx context.Context, name string, effect corev1.TaintEffect, set bool) error {
	err := retry.OnError(retry.DefaultBackoff, isBusy, func() error {
		cluster := &clusterv1alpha1.Cluster{}
		if err := f.Client.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
			return explainMember(err, name)
		}
		before := cluster.DeepCopy()
		cluster.Spec.Taints = unschedulable(cluster.Spec.Taints, effect, set)
		if err := f.Client.Patch(ctx, cluster,
			client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("spec.taints of member %s: %w", name, err)
		}
		return nil
	})
	if isBusy(err) {
		return fmt.Errorf("the fleet does not take the change of its member; try again in a moment: %w", err)
	}
	return err
}

// isBusy says whether the same may be taken a moment later.
func isBusy(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err)
}

func unschedulable(taints []corev1.Taint, effect corev1.TaintEffect, set bool) []corev1.Taint {
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule}
	if effect == corev1.TaintEffectNoExecute {
		effects = append(effects, effect)
	}
	result := slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool {
		return t.Key == clusterv1alpha1.TaintUnschedulable && (!set || slices.Contains(effects, t.Effect))
	})
	if !set {
		return result
	}
	for _, e := range effects {
		result = append(result, corev1.Taint{Key: clusterv1alpha1.TaintUnschedulable, Effect: e})
	}
	return result
}

// draining is a wait until no Works are left in a member.
type draining struct {
	fleet  *Fleet
	member string
	tell   func(string, ...any)
	works  []workv1alpha1.Work
	// told is what was told last of how far it is.
	told string
}

// waitDrained waits until no Works are left, or tells which are, and what keeps each there.
func (f *Fleet) waitDrained(ctx context.Context, name string, timeout time.Duration, tell func(string, ...any)) error {
	d := &draining{fleet: f, member: name, tell: tell}
	err := wait.PollUntilContextTimeout(ctx, time.Second, timeout, true, d.look)
	switch {
	case !wait.Interrupted(err):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("%s still in %s after %s: %s; the member stays tainted, `trellisctl drain %s` waits longer and "+
		"`trellisctl uncordon %s` takes the taint back", counted(len(d.works), "object"), name, timeout,
		d.fleet.whatStays(ctx, name, d.works), name, name)
}

// look lists what is left, and tells when that has changed. A connection that is lost for a while ends nothing.
func (d *draining) look(ctx context.Context) (done bool, err error) {
	var works workv1alpha1.WorkList
	err = d.fleet.Client.List(ctx, &works, client.InNamespace(clusterv1alpha1.ExecutionNamespace(d.member)))
	switch {
	case isRefusal(err):
		return false, fmt.Errorf("listing what is left in %s, which stays tainted: %w", d.member, err)
	case err != nil && ctx.Err() == nil:
		d.say("No connection to the fleet, trying again: " + oneLine(err.Error()))
		return false, nil
	case err != nil:
		return false, nil
	}
	d.works = works.Items
	left := fmt.Sprintf("%s left in %s", counted(len(d.works), "object"), d.member)
	if held := len(slices.DeleteFunc(slices.Clone(d.works),
		func(w workv1alpha1.Work) bool { return !w.DeletionHeld() })); held > 0 {
		waiting := fmt.Sprintf("%d of which wait", held)
		if held == 1 {
			waiting = "1 of which waits"
		}
		left += fmt.Sprintf(", %s for a confirmation: trellisctl deletions --cluster %s", waiting, d.member)
	}
	d.say(left)
	return len(d.works) == 0, nil
}

// say tells something once.
func (d *draining) say(text string) {
	if text != d.told {
		d.told = text
		d.tell("%s", text)
	}
}

// mostStaying is how many objects are told that hold up a drain.
const mostStaying = 5

// whatStays tells of objects in a member, and what keeps each there.
func (f *Fleet) whatStays(ctx context.Context, member string, works []workv1alpha1.Work) string {
	// The time for waiting is over; the time for saying why has begun.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer stop()
	slices.SortFunc(works, func(a, b workv1alpha1.Work) int { return strings.Compare(a.Name, b.Name) })
	var parts []string
	for i := range works[:min(len(works), mostStaying)] {
		object := objectOf(&works[i])
		parts = append(parts, oneLine(fmt.Sprintf("%s %s %s",
			orElse(object.GetKind(), "Work"), nameIn(object.GetNamespace(), orElse(object.GetName(), works[i].Name)),
			f.whyHere(ctx, member, &works[i]))))
	}
	if more := len(works) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// whyHere is why a Work is in a member that is drained.
func (f *Fleet) whyHere(ctx context.Context, member string, work *workv1alpha1.Work) string {
	switch {
	case work.DeletionHeld():
		return "(its deletion waits for `trellisctl deletions confirm --cluster " + member + "`)"
	case work.DeletionTimestamp != nil:
		return "(is being deleted there, for which the member must answer)"
	}
	key, ok := bindings.OfWork(work)
	if !ok {
		return "(somebody wrote its Work " + work.Name + " by hand)"
	}
	b, err := bindings.Get(ctx, f.Client, key)
	if err != nil || b == nil {
		return "(no decision on it can be read)"
	}
	return "(" + whyStill(b, member) + ")"
}

// whyStill is why a binding has a copy in a member that is drained.
func whyStill(b bindings.Binding, member string) string {
	spec := b.BindingSpec()
	drained := corev1.Taint{Key: clusterv1alpha1.TaintUnschedulable, Effect: corev1.TaintEffectNoExecute}
	if p := spec.Placement; p != nil && slices.ContainsFunc(p.ClusterTolerations,
		func(t corev1.Toleration) bool { return failover.Tolerates(t, drained) }) {
		return orElse(policies.ClaimedBy(b), "its policy") + " tolerates the taint"
	}
	for i := range spec.GracefulEvictionTasks {
		if spec.GracefulEvictionTasks[i].FromCluster == member {
			return "its replacement is not healthy elsewhere yet"
		}
	}
	scheduled := meta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.ConditionScheduled)
	if scheduled != nil && scheduled.Status != "True" {
		return "fits nowhere else: " + scheduled.Message
	}
	return "its decision still has it there; see `trellisctl explain`"
}
