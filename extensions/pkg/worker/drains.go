package worker

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/few"
)

const (
	// drainPatience is how long a drain may be refused by PodDisruptionBudgets that allow no eviction although all of
	// their pods are healthy, until the Worker fails with that. machine-controller-manager tries again all the while.
	drainPatience = 2 * time.Minute
	// mostOfFailure is how much of what machine-controller-manager says is told, in bytes; mostTold is how many budgets
	// of a drain are told, and how many drains. Users choose the names and how many there are.
	mostOfFailure, mostTold = 500, 5
)

// What machine-controller-manager writes into a machine's last operation when it cannot drain the node.
var (
	drainFailed = regexp.MustCompile(`^Drain failed due to - (?s:(.*))\. Will retry in next sync\. `)
	strictest   = regexp.MustCompile(`pod disruption budget (\S+/\S+) is misconfigured`)
)

// drain is that of the node of a machine that goes, or is about to be updated in place.
type drain struct {
	machine, node string
	// lasts is for how long the machine has been going, or the node has been selected for the update.
	lasts time.Duration
	// failure is what the last attempt failed with; empty as long as there was none that did.
	failure string
	// budgets are those that cannot be content: they allow no eviction although all of their pods are healthy.
	budgets []string
}

// drainsOf returns the drains of machines.
func drainsOf(machines []machinev1alpha1.Machine, now time.Time) []drain {
	var all []drain
	for _, machine := range machines {
		description := machine.Status.LastOperation.Description
		since := drainedSince(machine)
		if since == nil {
			continue
		}
		d := drain{
			machine: machine.Name, node: machine.Labels[machinev1alpha1.NodeLabelKey],
			lasts: now.Sub(since.Time).Truncate(time.Second),
		}
		if found := drainFailed.FindStringSubmatch(description); found != nil {
			d.failure = found[1]
		}
		for _, found := range strictest.FindAllStringSubmatch(d.failure, -1) {
			d.budgets = append(d.budgets, found[1])
		}
		slices.Sort(d.budgets)
		d.budgets = slices.Compact(d.budgets)
		all = append(all, d)
	}
	return all
}

// drainedSince is when machine-controller-manager began to drain the node of a machine; nil if it does not.
func drainedSince(machine machinev1alpha1.Machine) *metav1.Time {
	if machine.DeletionTimestamp != nil {
		if strings.Contains(machine.Status.LastOperation.Description, machineutils.InitiateDrain) {
			return machine.DeletionTimestamp
		}
		return nil
	}
	for _, condition := range machine.Status.Conditions {
		if condition.Type == machinev1alpha1.NodeInPlaceUpdate &&
			condition.Reason == machinev1alpha1.SelectedForUpdate {
			return &condition.LastTransitionTime
		}
	}
	return nil
}

// String tells who is drained and what hinders it, as far as that is known.
func (d drain) String() string {
	text := fmt.Sprintf("node %s of machine %s has been drained for %s", d.node, d.machine, d.lasts)
	switch {
	case len(d.budgets) > 0:
		text += fmt.Sprintf(", and PodDisruptionBudget %s allows no eviction although all its pods are healthy: "+
			"give its pods more replicas, or allow one of them to be away", few.Joined(d.budgets, mostTold, ", "))
	case d.failure != "":
		text += ": " + strings.ToValidUTF8(d.failure[:min(len(d.failure), mostOfFailure)], "")
	}
	return text
}

// isBlocked says whether the drain does not get on until somebody changes something in the shoot.
func (d drain) isBlocked() bool { return len(d.budgets) > 0 && d.lasts >= drainPatience }

// drains returns the drains of the machines of a MachineDeployment.
func (a *actuator) drains(ctx context.Context, namespace, deployment string) ([]drain, error) {
	machines := &machinev1alpha1.MachineList{}
	if err := a.client.List(ctx, machines, client.InNamespace(namespace),
		client.MatchingLabels{labelName: deployment}); err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	return drainsOf(machines.Items, time.Now()), nil
}

// withDrains adds to what is missing which drains there are. With one that does not get on, that is an error.
func withDrains(missing error, drains []drain) (told, failed error) {
	if len(drains) > 0 {
		var texts []string
		for _, d := range drains {
			texts = append(texts, d.String())
		}
		missing = fmt.Errorf("%w; %s", missing, few.Joined(texts, mostTold, ", "))
	}
	if slices.ContainsFunc(drains, drain.isBlocked) {
		return nil, extension.WithCodes(missing, gardencorev1beta1.ErrorRetryableConfigurationProblem)
	}
	return missing, nil
}
