package worker

import (
	"context"
	"fmt"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
)

// hibernationDrain is how long a node may be drained when its shoot is hibernated. Pods have no other node to go to, so
// a PodDisruptionBudget may never be content; after this time machines are deleted by force.
const hibernationDrain = 3 * time.Minute

// hibernate waits until the last machine is gone, and then stops machine-controller-manager: the API server that it
// needs is about to be stopped.
func (a *actuator) hibernate(ctx context.Context, namespace string, deployments []Deployment) error {
	var unfinished error
	err := wait.PollUntilContextTimeout(ctx, a.options.PollInterval, a.options.ReadyTimeout, true,
		func(ctx context.Context) (bool, error) {
			list := &machinev1alpha1.MachineList{}
			if err := a.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return false, fmt.Errorf("listing Machines: %w", err)
			}
			if unfinished = remainingMachines(list.Items); unfinished == nil {
				unfinished = a.noneWanted(ctx, namespace, deployments)
			}
			return unfinished == nil, a.forceOverdue(ctx, list.Items, time.Now())
		})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("the shoot cannot be hibernated yet, after %s: %w", a.options.ReadyTimeout, unfinished)
	}
	if err != nil {
		return err
	}
	return a.stopManager(ctx, namespace)
}

// remainingMachines is the error that tells which machines are left.
func remainingMachines(machines []machinev1alpha1.Machine) error {
	if len(machines) == 0 {
		return nil
	}
	return fmt.Errorf("%d machines are left, first %s: %s", len(machines), machines[0].Name,
		machines[0].Status.LastOperation.Description)
}

// noneWanted is the error of a MachineDeployment of which machine-controller-manager may not have seen yet that it is
// to have no machines: it could still be making one.
func (a *actuator) noneWanted(ctx context.Context, namespace string, deployments []Deployment) error {
	for _, wanted := range deployments {
		var deployment machinev1alpha1.MachineDeployment
		if err := a.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: wanted.Name},
			&deployment); err != nil {
			return err
		}
		if err := readiness(&deployment, wanted.ClassName); err != nil {
			return err
		}
	}
	return nil
}

// forceOverdue ends the draining of nodes that takes too long.
func (a *actuator) forceOverdue(ctx context.Context, machines []machinev1alpha1.Machine, now time.Time) error {
	for i := range machines {
		if !drainsTooLong(&machines[i], now) {
			continue
		}
		if err := a.forceDeletion(ctx, &machines[i]); err != nil {
			return err
		}
	}
	return nil
}

// drainsTooLong tells whether a machine has been on its way out for longer than hibernationDrain.
func drainsTooLong(machine *machinev1alpha1.Machine, now time.Time) bool {
	return machine.DeletionTimestamp != nil && now.Sub(machine.DeletionTimestamp.Time) > hibernationDrain
}

// stopManager scales machine-controller-manager to nothing. Its next deployment starts it again.
func (a *actuator) stopManager(ctx context.Context, namespace string) error {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ManagerName}}
	return client.IgnoreNotFound(component.Scale(ctx, a.client, deployment, 0))
}
