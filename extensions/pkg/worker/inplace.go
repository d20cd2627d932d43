package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/few"
)

// isInPlace says whether machines of a pool stay when they have to change.
func isInPlace(pool extensionsv1alpha1.WorkerPool) bool {
	return pool.UpdateStrategy != nil && *pool.UpdateStrategy != gardencorev1beta1.AutoRollingUpdate
}

// isManual says whether the owner of the shoot says which machine of a pool is updated next.
func isManual(pool extensionsv1alpha1.WorkerPool) bool {
	return pool.UpdateStrategy != nil && *pool.UpdateStrategy == gardencorev1beta1.ManualInPlaceUpdate
}

// strategy is how machine-controller-manager brings machines up to date.
func (d Deployment) strategy() machinev1alpha1.MachineDeploymentStrategy {
	surge, unavailable := d.MaxSurge, d.MaxUnavailable
	pace := machinev1alpha1.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &unavailable}
	if !isInPlace(d.Pool) {
		return machinev1alpha1.MachineDeploymentStrategy{
			Type:          machinev1alpha1.RollingUpdateMachineDeploymentStrategyType,
			RollingUpdate: &machinev1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: pace},
		}
	}
	orchestration := machinev1alpha1.OrchestrationTypeAuto
	if isManual(d.Pool) {
		orchestration = machinev1alpha1.OrchestrationTypeManual
	}
	return machinev1alpha1.MachineDeploymentStrategy{
		Type: machinev1alpha1.InPlaceUpdateMachineDeploymentStrategyType,
		InPlaceUpdate: &machinev1alpha1.InPlaceUpdateMachineDeployment{
			UpdateConfiguration: pace, OrchestrationType: orchestration,
		},
	}
}

// missingInPlace is missing for a pool that is updated in place. Updates that the shoot's owner has to ask for are not
// waited for, nor are the machines that have theirs at the time.
func (a *actuator) missingInPlace(ctx context.Context, deployment *machinev1alpha1.MachineDeployment,
	wanted Deployment) (missing, err error) {
	if deployment.Status.ObservedGeneration >= deployment.Generation {
		if err := a.allowNewMachines(ctx, deployment, wanted.ClassName); err != nil {
			return nil, err
		}
	}
	machines, err := a.machinesOf(ctx, deployment)
	if err != nil {
		return nil, err
	}
	if isManual(wanted.Pool) {
		return readinessManual(deployment, wanted.ClassName, machines), nil
	}
	missing = readiness(deployment, wanted.ClassName)
	if missing == nil {
		return nil, nil
	}
	return withDrains(errors.Join(missing, failedUpdates(machines)), drainsOf(machines, time.Now()))
}

// allowNewMachines lets a MachineSet of the wanted class have new machines. machine-controller-manager forbids that to
// those that machines are to leave, and does not take it back when such a class is wanted again.
func (a *actuator) allowNewMachines(ctx context.Context, deployment *machinev1alpha1.MachineDeployment,
	class string) error {
	sets := &machinev1alpha1.MachineSetList{}
	if err := a.client.List(ctx, sets, client.InNamespace(deployment.Namespace),
		client.MatchingLabels{labelName: deployment.Name}); err != nil {
		return fmt.Errorf("listing MachineSets: %w", err)
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		_, forbidden := set.Labels[machineutils.LabelKeyMachineSetScaleUpDisabled]
		if !forbidden || set.Spec.Template.Spec.Class.Name != class {
			continue
		}
		before := set.DeepCopy()
		delete(set.Labels, machineutils.LabelKeyMachineSetScaleUpDisabled)
		if err := client.IgnoreNotFound(a.client.Patch(ctx, set, client.MergeFrom(before))); err != nil {
			return fmt.Errorf("allowing MachineSet %s/%s new machines: %w", set.Namespace, set.Name, err)
		}
	}
	return nil
}

// readinessManual is readiness but for what waits for the owner.
func readinessManual(deployment *machinev1alpha1.MachineDeployment, class string,
	machines []machinev1alpha1.Machine) error {
	updating := int32(0)
	for _, machine := range machines {
		if isUpdating(machine) {
			updating++
		}
	}
	tolerant := deployment.DeepCopy()
	tolerant.Status.UpdatedReplicas = deployment.Spec.Replicas
	tolerant.Status.AvailableReplicas += updating
	return readiness(tolerant, class)
}

// isUpdating says whether a machine has an update in place, whatever comes of it.
func isUpdating(machine machinev1alpha1.Machine) bool {
	switch machine.Status.CurrentStatus.Phase {
	case machinev1alpha1.MachineInPlaceUpdating, machinev1alpha1.MachineInPlaceUpdateFailed,
		machinev1alpha1.MachineInPlaceUpdateSuccessful:
		return true
	}
	return false
}

// failedUpdates tells of machines whose update has failed; nil if there is none.
func failedUpdates(machines []machinev1alpha1.Machine) error {
	var texts []string
	for _, machine := range machines {
		if machine.Status.CurrentStatus.Phase != machinev1alpha1.MachineInPlaceUpdateFailed {
			continue
		}
		why := machine.Status.LastOperation.Description
		texts = append(texts, strings.ToValidUTF8(why[:min(len(why), mostOfFailure)], ""))
	}
	if len(texts) == 0 {
		return nil
	}
	return fmt.Errorf("updates in place have failed, which node-agents try again: %s",
		few.Joined(texts, mostTold, ", "))
}

func (a *actuator) machinesOf(ctx context.Context,
	deployment *machinev1alpha1.MachineDeployment) ([]machinev1alpha1.Machine, error) {
	machines := &machinev1alpha1.MachineList{}
	if err := a.client.List(ctx, machines, client.InNamespace(deployment.Namespace),
		client.MatchingLabels{labelName: deployment.Name}); err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	return machines.Items, nil
}

// classesInPlace are the classes of machines that stay in spite of having another one than is wanted.
func (a *actuator) classesInPlace(ctx context.Context, namespace string,
	deployments []Deployment) (map[string]bool, error) {
	classes, stay := map[string]bool{}, map[string]bool{}
	for _, deployment := range deployments {
		stay[deployment.Name] = isInPlace(deployment.Pool)
	}
	machines := &machinev1alpha1.MachineList{}
	if err := a.client.List(ctx, machines, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	for _, machine := range machines.Items {
		if stay[machine.Labels[labelName]] {
			classes[machine.Spec.Class.Name] = true
		}
	}
	return classes, nil
}

// reportInPlaceUpdates writes which updates all machines of pools have had.
func (a *actuator) reportInPlaceUpdates(ctx context.Context, worker *extensionsv1alpha1.Worker,
	deployments []Deployment) error {
	hashes, err := a.updatesDone(ctx, worker, deployments)
	if err != nil {
		return err
	}
	var status *extensionsv1alpha1.InPlaceUpdatesWorkerStatus
	if len(hashes) > 0 {
		status = &extensionsv1alpha1.InPlaceUpdatesWorkerStatus{WorkerPoolToHashMap: hashes}
	}
	if apiequality.Semantic.DeepEqual(worker.Status.InPlaceUpdates, status) {
		return nil
	}
	written := worker.DeepCopy()
	written.Status.InPlaceUpdates = status
	if err := a.client.Status().Patch(ctx, written, client.MergeFrom(worker.DeepCopy())); err != nil {
		return fmt.Errorf("reporting updates in place: %w", err)
	}
	worker.Status.InPlaceUpdates = status
	worker.SetResourceVersion(written.GetResourceVersion())
	return nil
}

// updatesDone are the hashes of the updates that pools have had. That of a pool with machines that wait is the last one
// that was reported.
func (a *actuator) updatesDone(ctx context.Context, worker *extensionsv1alpha1.Worker,
	deployments []Deployment) (map[string]string, error) {
	waiting := map[string]bool{}
	for _, wanted := range deployments {
		if !isManual(wanted.Pool) {
			continue // they have been waited for
		}
		var deployment machinev1alpha1.MachineDeployment
		key := client.ObjectKey{Namespace: worker.Namespace, Name: wanted.Name}
		if err := a.client.Get(ctx, key, &deployment); err != nil {
			return nil, err
		}
		if deployment.Status.UpdatedReplicas < deployment.Spec.Replicas {
			waiting[wanted.Pool.Name] = true
		}
	}
	hashes := map[string]string{}
	for _, wanted := range deployments {
		name, hash := wanted.Pool.Name, wanted.Pool.Annotations[gardencorev1beta1.AnnotationWorkerInPlaceUpdate]
		if waiting[name] && worker.Status.InPlaceUpdates != nil {
			hash = worker.Status.InPlaceUpdates.WorkerPoolToHashMap[name]
		} else if waiting[name] {
			hash = ""
		}
		if isInPlace(wanted.Pool) && hash != "" {
			hashes[name] = hash
		}
	}
	return hashes, nil
}
