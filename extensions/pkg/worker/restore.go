package worker

import (
	"context"
	"fmt"
	"slices"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/machinestate"
)

// Restore implements extension.Restorer: the machines that status.state tells of are taken over, and stay. Their
// objects are there before machine-controller-manager is, which otherwise would make others, and delete these as
// nobody's.
func (a *actuator) Restore(ctx context.Context, log logr.Logger, worker *extensionsv1alpha1.Worker,
	shoot *cluster.Cluster) error {
	if shoot == nil {
		return fmt.Errorf("namespace %s has no Cluster; a Worker belongs to a shoot", worker.Namespace)
	}
	if state := worker.Status.State; state != nil && len(state.Raw) > 0 {
		known, err := machinestate.Decode(state.Raw)
		if err != nil {
			return err
		}
		if err := a.takeOver(ctx, log, worker, shoot, known); err != nil {
			return err
		}
	}
	return a.Reconcile(ctx, log, worker, shoot)
}

// takeOver makes the objects of machines that are there. Once machine-controller-manager is deployed it knows better.
func (a *actuator) takeOver(ctx context.Context, log logr.Logger, worker *extensionsv1alpha1.Worker,
	shoot *cluster.Cluster, known *machinestate.State) error {
	err := a.client.Get(ctx, client.ObjectKey{Namespace: worker.Namespace, Name: ManagerName}, &appsv1.Deployment{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	deployments, err := a.plan(ctx, worker, shoot)
	if err != nil {
		return err
	}
	if err := checkKnown(known, deployments); err != nil {
		return err
	}
	for _, deployment := range deployments {
		was := known.MachineDeployments[deployment.Name]
		if was == nil {
			continue
		}
		if err := a.takeOverDeployment(ctx, worker, deployment, was); err != nil {
			return fmt.Errorf("MachineDeployment %s: %w", deployment.Name, err)
		}
		log.Info("took over machines", "machineDeployment", deployment.Name, "machines", len(was.Machines))
	}
	return nil
}

// checkKnown refuses machines that nobody would care for, and objects that belong to no MachineDeployment.
func checkKnown(known *machinestate.State, deployments []Deployment) error {
	for name, was := range known.MachineDeployments {
		planned := slices.ContainsFunc(deployments, func(d Deployment) bool { return d.Name == name })
		if !planned && len(was.Machines) > 0 {
			return extension.WithCodes(fmt.Errorf("%s has %d machines, but no worker pool has it any more: leave the "+
				"pools as they were until the control plane is restored", name, len(was.Machines)),
				gardencorev1beta1.ErrorConfigurationProblem)
		}
		for _, object := range objectsIn(was) {
			if object.GetLabels()[labelName] != name {
				return fmt.Errorf("%T %s does not have the label %s=%s of its MachineDeployment", object,
					object.GetName(), labelName, name)
			}
		}
	}
	return nil
}

// objectsIn are the objects of the machines of a MachineDeployment, sets first.
func objectsIn(was *machinestate.Deployment) []client.Object {
	var objects []client.Object
	for i := range was.MachineSets {
		objects = append(objects, &was.MachineSets[i])
	}
	for i := range was.Machines {
		objects = append(objects, &was.Machines[i])
	}
	return objects
}

// takeOverDeployment makes the objects of one MachineDeployment. They find their owners by labels.
func (a *actuator) takeOverDeployment(ctx context.Context, worker *extensionsv1alpha1.Worker, wanted Deployment,
	was *machinestate.Deployment) error {
	for _, class := range classesOf(wanted, was) {
		named := wanted
		named.ClassName = class
		if err := a.applyClass(ctx, worker, named); err != nil {
			return err
		}
	}
	for _, object := range objectsIn(was) {
		object.SetNamespace(worker.Namespace)
		if err := client.IgnoreAlreadyExists(a.client.Create(ctx, object)); err != nil {
			return fmt.Errorf("%T %s: %w", object, object.GetName(), err)
		}
	}
	deployment := &machinev1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: worker.Namespace, Name: wanted.Name},
	}
	wanted.applyDeployment(deployment, worker.Spec.Region)
	deployment.Spec.Replicas = wanted.replicas(&was.Replicas, false)
	return client.IgnoreAlreadyExists(a.client.Create(ctx, deployment))
}

// classesOf are the names of the wanted class and of those that machines have still. The latter are given what is
// wanted now, which is enough to delete these machines: what they were made of is not known any more.
func classesOf(wanted Deployment, was *machinestate.Deployment) []string {
	classes := []string{wanted.ClassName}
	add := func(name string) {
		if name != "" && !slices.Contains(classes, name) {
			classes = append(classes, name)
		}
	}
	for i := range was.MachineSets {
		add(was.MachineSets[i].Spec.Template.Spec.Class.Name)
	}
	for i := range was.Machines {
		add(was.Machines[i].Spec.Class.Name)
	}
	return classes
}
