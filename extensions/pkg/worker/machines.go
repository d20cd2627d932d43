package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/pkg/errorcodes"
)

// labelForceDeletion makes machine-controller-manager delete a machine without draining its node.
const labelForceDeletion = "force-deletion"

// readiness tells what a MachineDeployment still lacks; nil when all its machines are of the class and available.
func readiness(deployment *machinev1alpha1.MachineDeployment, class string) error {
	wanted, status := deployment.Spec.Replicas, deployment.Status
	switch {
	case status.ObservedGeneration < deployment.Generation:
		return fmt.Errorf("%s: not yet seen by machine-controller-manager", deployment.Name)
	case deployment.Spec.Template.Spec.Class.Name != class:
		return fmt.Errorf("%s: still has class %s", deployment.Name, deployment.Spec.Template.Spec.Class.Name)
	case status.UpdatedReplicas < wanted:
		return fmt.Errorf("%s: %d of %d machines are of the wanted kind%s", deployment.Name, status.UpdatedReplicas,
			wanted, failures(deployment))
	case status.Replicas > wanted:
		return fmt.Errorf("%s: %d machines too many are left", deployment.Name, status.Replicas-wanted)
	case status.AvailableReplicas < wanted:
		return fmt.Errorf("%s: %d of %d machines are available%s", deployment.Name, status.AvailableReplicas, wanted,
			failures(deployment))
	}
	return nil
}

func failures(deployment *machinev1alpha1.MachineDeployment) string {
	var texts []string
	for _, machine := range deployment.Status.FailedMachines {
		if machine != nil {
			texts = append(texts, machine.Name+": "+machine.LastOperation.Description)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return " (" + strings.Join(texts, "; ") + ")"
}

// hopeless is the error of a machine that cannot be made until somebody changes something.
func hopeless(deployment *machinev1alpha1.MachineDeployment) error {
	var all error
	for _, machine := range deployment.Status.FailedMachines {
		if machine == nil || machine.LastOperation.Type != machinev1alpha1.MachineOperationCreate {
			continue
		}
		if code, known := errorcodes.OfDriver(machine.LastOperation.ErrorCode); known {
			all = errors.Join(all, extension.WithCodes(fmt.Errorf("machine %s: %s", machine.Name,
				machine.LastOperation.Description), code))
		}
	}
	return all
}

// remaining counts what machine-controller-manager has to let go of.
func (a *actuator) remaining(ctx context.Context, namespace string) (int, error) {
	count := 0
	for _, list := range machineLists() {
		if err := a.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return 0, fmt.Errorf("listing %T: %w", list, err)
		}
		count += meta.LenList(list)
	}
	return count, nil
}

// machineLists are the kinds in the order in which they are deleted: owners first, so that nothing is made anew.
func machineLists() []client.ObjectList {
	return []client.ObjectList{
		&machinev1alpha1.MachineDeploymentList{}, &machinev1alpha1.MachineSetList{}, &machinev1alpha1.MachineList{},
		&machinev1alpha1.MachineClassList{},
	}
}

// deleteMachines deletes everything and waits until it is gone.
func (a *actuator) deleteMachines(ctx context.Context, namespace string) error {
	left := 0
	err := wait.PollUntilContextTimeout(ctx, a.options.PollInterval, a.options.ReadyTimeout, true,
		func(ctx context.Context) (bool, error) {
			if err := a.requestDeletion(ctx, namespace); err != nil {
				return false, err
			}
			var err error
			left, err = a.remaining(ctx, namespace)
			return left == 0, err
		})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("%d objects of machines are left after %s; see Machines in namespace %s", left,
			a.options.ReadyTimeout, namespace)
	}
	if err != nil {
		return err
	}
	return a.deleteUnusedClasses(ctx, namespace, nil)
}

// requestDeletion marks and deletes what is not being deleted yet.
func (a *actuator) requestDeletion(ctx context.Context, namespace string) error {
	for _, list := range machineLists() {
		if err := a.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("listing %T: %w", list, err)
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			return a.requestDeletionOf(ctx, item.(client.Object))
		}); err != nil {
			return err
		}
	}
	return nil
}

func (a *actuator) requestDeletionOf(ctx context.Context, object client.Object) error {
	if machine, ok := object.(*machinev1alpha1.Machine); ok {
		if err := a.forceDeletion(ctx, machine); err != nil {
			return err
		}
	}
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := client.IgnoreNotFound(a.client.Delete(ctx, object)); err != nil {
		return fmt.Errorf("deleting %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// forceDeletion has a machine deleted without draining its node.
func (a *actuator) forceDeletion(ctx context.Context, machine *machinev1alpha1.Machine) error {
	if machine.Labels[labelForceDeletion] == "True" {
		return nil
	}
	before := client.MergeFrom(machine.DeepCopy())
	setLabel(machine, labelForceDeletion, "True")
	if err := client.IgnoreNotFound(a.client.Patch(ctx, machine, before)); err != nil {
		return fmt.Errorf("Machine %s: %w", client.ObjectKeyFromObject(machine), err)
	}
	return nil
}

// managerFinalizers are what machine-controller-manager sets at Secrets that classes use.
var managerFinalizers = []string{
	"machine.sapcloud.io/machine-controller-manager", "machine.sapcloud.io/machine-controller",
}

// releaseSecrets removes the finalizers of machine-controller-manager from Secrets: it does so some time after the last
// class that uses them is gone, and may have ended before that.
func (a *actuator) releaseSecrets(ctx context.Context, namespace string) error {
	secrets := &corev1.SecretList{}
	if err := a.client.List(ctx, secrets, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing Secrets: %w", err)
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		before := client.MergeFrom(secret.DeepCopy())
		left := slices.DeleteFunc(slices.Clone(secret.Finalizers),
			func(f string) bool { return slices.Contains(managerFinalizers, f) })
		if len(left) == len(secret.Finalizers) {
			continue
		}
		secret.Finalizers = left
		if err := client.IgnoreNotFound(a.client.Patch(ctx, secret, before)); err != nil {
			return fmt.Errorf("releasing Secret %s: %w", client.ObjectKeyFromObject(secret), err)
		}
	}
	return nil
}

// abandonMachines removes the objects without waiting for machines.
func (a *actuator) abandonMachines(ctx context.Context, namespace string) error {
	secrets := &corev1.SecretList{}
	if err := a.client.List(ctx, secrets, client.InNamespace(namespace),
		client.MatchingLabels{labelPurpose: purposeMachineClass}); err != nil {
		return fmt.Errorf("listing Secrets of MachineClasses: %w", err)
	}
	lists := []client.ObjectList{secrets}
	for _, list := range machineLists() {
		if err := a.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("listing %T: %w", list, err)
		}
		lists = append(lists, list)
	}
	for _, list := range lists {
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			return a.abandon(ctx, item.(client.Object))
		}); err != nil {
			return err
		}
	}
	return nil
}

// abandon deletes an object, and does not wait for who has finalizers there.
func (a *actuator) abandon(ctx context.Context, object client.Object) error {
	if err := client.IgnoreNotFound(a.client.Delete(ctx, object)); err != nil {
		return fmt.Errorf("deleting %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	before := client.MergeFrom(object.DeepCopyObject().(client.Object))
	object.SetFinalizers(nil)
	if err := client.IgnoreNotFound(a.client.Patch(ctx, object, before)); err != nil {
		return fmt.Errorf("releasing %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}
