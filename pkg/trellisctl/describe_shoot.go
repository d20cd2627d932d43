package trellisctl

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// DescribeShoot tells all about the targeted shoot.
func (s *Session) DescribeShoot(ctx context.Context, out io.Writer, now time.Time) error {
	shoot, err := s.Shoot(ctx)
	if err != nil {
		return err
	}
	project := s.Target.Project
	if project == "" {
		project = s.newProject(ctx, shoot.Namespace)
	}
	fmt.Fprintf(out, "Shoot %s of project %s\n\n", oneLine(shoot.Name), oneLine(project))
	for _, tell := range []func() error{
		func() error { return shootFacts(out, shoot, now) },
		func() error { return shootPools(out, shoot) },
		func() error { return awaited(out, waitingFor(shoot, s.inCommands(shoot), now)) },
		func() error { return s.describeShootOperation(ctx, out, shoot, now) },
		func() error { return describeConditions(out, "CONDITION", shoot.Status.Conditions, now) },
		func() error { return describeConditions(out, "CONSTRAINT", shoot.Status.Constraints, now) },
		func() error { return describeRotations(out, rotationsOf(shoot), now) },
		func() error { return s.describeEvents(ctx, out, "Shoot", shoot, now) },
	} {
		if err := tell(); err != nil {
			return err
		}
	}
	return nil
}

func shootFacts(out io.Writer, shoot *gardencorev1beta1.Shoot, now time.Time) error {
	f := newFacts(out)
	f.tell("Namespace", shoot.Namespace)
	f.tell("Seed", seedOf(shoot))
	f.tell("Control plane", shoot.Status.TechnicalID)
	f.tell("Kubernetes", shoot.Spec.Kubernetes.Version)
	f.tell("Provider", joined(", ", shoot.Spec.Provider.Type, labelled("region", shoot.Spec.Region), profileText(shoot)))
	if shoot.Spec.Purpose != nil {
		f.tell("Purpose", string(*shoot.Spec.Purpose))
	}
	if ha := shoot.Spec.ControlPlane; ha != nil && ha.HighAvailability != nil {
		f.tell("Availability", "survives the loss of a "+string(ha.HighAvailability.FailureTolerance.Type))
	}
	f.tell("Created", ago(&shoot.CreationTimestamp, now))
	f.tell("Deleted", ago(shoot.DeletionTimestamp, now))
	f.tell("Gardenlet", shoot.Status.Gardener.Version)
	f.tell("State", wakefulness(shoot))
	f.tell("Hibernation", schedulesOf(shoot))
	f.tell("Maintenance", maintenanceOf(shoot, now))
	f.tell("Last maintenance", lastMaintenance(shoot, now))
	for _, address := range shoot.Status.AdvertisedAddresses {
		f.tell("Address", address.URL+" ("+address.Name+")")
	}
	if networks := shoot.Status.Networking; networks != nil {
		f.tell("Networks", joined("; ", labelled("pods", strings.Join(networks.Pods, ", ")),
			labelled("services", strings.Join(networks.Services, ", ")),
			labelled("nodes", strings.Join(networks.Nodes, ", ")),
			labelled("egress", strings.Join(networks.EgressCIDRs, ", "))))
	}
	return f.Flush()
}

// joined joins the parts that there are.
func joined(separator string, parts ...string) string {
	var there []string
	for _, part := range parts {
		if part != "" {
			there = append(there, part)
		}
	}
	return strings.Join(there, separator)
}

func labelled(label, value string) string {
	if value == "" {
		return ""
	}
	return label + " " + value
}

func seedOf(shoot *gardencorev1beta1.Shoot) string {
	wanted, present := deref(shoot.Spec.SeedName), deref(shoot.Status.SeedName)
	if present != "" && wanted != present {
		return present + ", moves to " + orElse(wanted, "none")
	}
	return orElse(wanted, "none yet")
}

func profileText(shoot *gardencorev1beta1.Shoot) string {
	if profile := shoot.Spec.CloudProfile; profile != nil {
		return profile.Kind + " " + profile.Name
	}
	return labelled("CloudProfile", deref(shoot.Spec.CloudProfileName))
}

func schedulesOf(shoot *gardencorev1beta1.Shoot) string {
	if shoot.Spec.Hibernation == nil {
		return ""
	}
	var schedules []string
	for _, schedule := range shoot.Spec.Hibernation.Schedules {
		schedules = append(schedules, joined(", ", labelled("asleep at", deref(schedule.Start)),
			labelled("awake at", deref(schedule.End)))+" ("+orElse(deref(schedule.Location), "UTC")+")")
	}
	return strings.Join(schedules, "; ")
}

// maintenanceOf tells when the shoot is maintained, and what is updated then.
func maintenanceOf(shoot *gardencorev1beta1.Shoot, now time.Time) string {
	maintenance := shoot.Spec.Maintenance
	if maintenance == nil || maintenance.TimeWindow == nil {
		return ""
	}
	window := *maintenance.TimeWindow
	when := "now"
	if until := window.Until(now); until > 0 {
		when = "in " + duration.HumanDuration(until)
	}
	var updates []string
	if update := maintenance.AutoUpdate; update != nil {
		if update.KubernetesVersion {
			updates = append(updates, "Kubernetes")
		}
		if ptr.Deref(update.MachineImageVersion, false) {
			updates = append(updates, "machine images")
		}
	}
	return fmt.Sprintf("%s to %s, %s; updates %s", window.Begin, window.End, when,
		orElse(strings.Join(updates, " and "), "nothing by itself"))
}

func lastMaintenance(shoot *gardencorev1beta1.Shoot, now time.Time) string {
	last := shoot.Status.LastMaintenance
	if last == nil {
		return ""
	}
	return joined(", ", string(last.State), ago(&last.TriggeredTime, now)) + ": " +
		joined("; ", last.Description, deref(last.FailureReason))
}

// shootPools tells which machines there are to be.
func shootPools(out io.Writer, shoot *gardencorev1beta1.Shoot) error {
	if len(shoot.Spec.Provider.Workers) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := newTable(out, "POOL", "NODES", "MACHINE", "IMAGE", "KUBERNETES", "ZONES")
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		image, version := "", ""
		if worker.Machine.Image != nil {
			image = joined(" ", worker.Machine.Image.Name, deref(worker.Machine.Image.Version))
		}
		if worker.Kubernetes != nil {
			version = deref(worker.Kubernetes.Version)
		}
		number := fmt.Sprint(worker.Minimum)
		if worker.Maximum != worker.Minimum {
			number = fmt.Sprintf("%d-%d", worker.Minimum, worker.Maximum)
		}
		t.row(worker.Name, number, worker.Machine.Type, image, orElse(version, shoot.Spec.Kubernetes.Version),
			strings.Join(worker.Zones, ","))
	}
	return t.Flush()
}

// awaited tells what an object waits for.
func awaited(out io.Writer, reasons []string) error {
	for i, reason := range reasons {
		before := "             "
		if i == 0 {
			before = "\nWaiting for: "
		}
		if _, err := fmt.Fprintf(out, "%s%s\n", before, oneLine(reason)); err != nil {
			return err
		}
	}
	return nil
}

// waitingFor says what has to happen next before the shoot is as it should be, and who has to do it. What runs is told
// with the operation.
func waitingFor(shoot *gardencorev1beta1.Shoot, inCommands string, now time.Time) []string {
	var reasons []string
	operation := shoot.Status.LastOperation
	switch {
	case deref(shoot.Spec.SeedName) == "":
		return []string{"the scheduler, to find a seed; its reasons are among the events"}
	case operation == nil:
		return []string{"gardenlet of seed " + *shoot.Spec.SeedName + ", to begin"}
	case operation.State == gardencorev1beta1.LastOperationStateFailed:
		reasons = append(reasons, "somebody, to do away with the cause and change the shoot, or to try it again: "+
			"trellisctl retry shoot "+inCommands)
	case operation.State == gardencorev1beta1.LastOperationStateError:
		reasons = append(reasons, "the next try, by itself")
	}
	if shoot.Generation > shoot.Status.ObservedGeneration {
		reasons = append(reasons, "gardenlet, to begin with the newest change"+untilWindow(shoot, inCommands, now))
	}
	return slices.Concat(reasons, waitingForYou(shoot), awaitedRotations(shoot, inCommands))
}

// untilWindow tells of a change that waits for the maintenance.
func untilWindow(shoot *gardencorev1beta1.Shoot, inCommands string, now time.Time) string {
	maintenance := shoot.Spec.Maintenance
	if maintenance == nil || maintenance.TimeWindow == nil || !ptr.Deref(maintenance.ConfineSpecUpdateRollout, false) {
		return ""
	}
	until := maintenance.TimeWindow.Until(now)
	if until <= 0 {
		return ""
	}
	return ", in the maintenance window that opens in " + duration.HumanDuration(until) +
		"; to begin now: trellisctl reconcile shoot " + inCommands
}

// waitingForYou says what its owner has to do to machines before the shoot is as it should be.
func waitingForYou(shoot *gardencorev1beta1.Shoot) []string {
	var reasons []string
	if pending := shoot.Status.ManualWorkerPoolRollout; pending != nil && len(pending.PendingWorkersRollouts) > 0 {
		reasons = append(reasons, "you, to have machines replaced, by deleting their nodes one by one, of pools "+
			poolsOf(pending.PendingWorkersRollouts))
	}
	if updates := shoot.Status.InPlaceUpdates; updates != nil && updates.PendingWorkerUpdates != nil &&
		len(updates.PendingWorkerUpdates.ManualInPlaceUpdate) > 0 {
		reasons = append(reasons, "you, to have machines updated of pools "+
			strings.Join(updates.PendingWorkerUpdates.ManualInPlaceUpdate, ","))
	}
	return reasons
}

// describeRotations tells how far the rotations of credentials are that there have been.
func describeRotations(out io.Writer, rotations []rotationState, now time.Time) error {
	if len(rotations) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	return printRotations(out, rotations, now)
}
