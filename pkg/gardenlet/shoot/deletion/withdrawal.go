package deletion

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/tasks"
)

// Withdrawal takes down a control plane whose shoot another seed has: what is left here is a copy, which must not act.
// Nothing is deleted outside of the seed, neither machines nor networks nor records nor backups, which the other one
// has taken over; nor in the garden, in which this seed has no right to the shoot any more.
type Withdrawal struct {
	*Deletion
}

// NewWithdrawal takes down the control plane in a namespace, of the shoot with a UID.
func NewWithdrawal(namespace, uid string, seed client.WithWatch) *Withdrawal {
	return &Withdrawal{
		Deletion: New(&plan.Deletion{Identity: plan.Identity{Namespace: namespace, UID: uid}}, nil, seed),
	}
}

// Flow builds the graph. What acts on machines stops first, then all that runs, then everything else goes.
func (w *Withdrawal) Flow() (*flow.Flow, error) {
	g := flow.NewGraph("Withdrawal of a control plane")
	told := g.Add(flow.Task{Name: "Telling extensions", Fn: tasks.Retried(w.tellExtensions)})
	still := g.Add(flow.Task{
		Name: "Stopping what acts on machines", Fn: tasks.Rollout(w.stopManagers), Dependencies: []flow.TaskID{told},
	})
	kept := g.Add(flow.Task{
		Name: "Leaving objects of the shoot to the other seed", Fn: tasks.Retried(w.keepObjects),
		Dependencies: []flow.TaskID{still},
	})
	stopped := g.Add(flow.Task{
		Name: "Stopping the control plane", Fn: tasks.Retried(w.stop), Dependencies: []flow.TaskID{kept},
	})
	left := g.Add(flow.Task{
		Name:         "Leaving the infrastructure to the other seed",
		Fn:           flow.TaskFn(w.leaveInfrastructure).RetryUntilTimeout(tasks.RetryInterval, deletionTimeout),
		Dependencies: []flow.TaskID{stopped},
	})
	resources := g.Add(flow.Task{
		Name:         "Deleting managed resources",
		Fn:           flow.TaskFn(w.deleteManagedResources).RetryUntilTimeout(tasks.RetryInterval, deletionTimeout),
		Dependencies: []flow.TaskID{left},
	})
	machines := g.Add(flow.Task{
		Name: "Forgetting machines", Fn: tasks.Rollout(w.forgetMachines), Dependencies: []flow.TaskID{resources},
	})
	cluster := g.Add(flow.Task{
		Name: "Deleting Cluster", Fn: tasks.Retried(w.deleteCluster), Dependencies: []flow.TaskID{machines},
	})
	// The last one, as the namespace is what tells that there is something to take down. Those beside it stay: what is
	// in them may be machines.
	g.Add(flow.Task{
		Name: "Deleting namespace", Fn: w.deleteOwnNamespace, Dependencies: []flow.TaskID{cluster},
	})
	return g.Compile()
}

// objects are those of extensions, which act outside of the seed.
func (w *Withdrawal) objects(ctx context.Context) ([]extension.Object, error) {
	objects, err := extension.ListOfShoot(ctx, w.Seed, w.Plan.Namespace)
	if err != nil {
		return nil, err
	}
	entry := &extensionsv1alpha1.BackupEntry{}
	key := client.ObjectKey{Name: w.Plan.BackupEntry()}
	if err := w.Seed.Get(ctx, key, entry); err != nil {
		return objects, client.IgnoreNotFound(err)
	}
	return append(objects, entry), nil
}

// tellExtensions asks for the operation migrate, by which extensions let go of their objects, and which keeps them from
// doing what they were asked for before.
func (w *Withdrawal) tellExtensions(ctx context.Context) error {
	objects, err := w.objects(ctx)
	if err != nil {
		return err
	}
	var all []error
	for _, object := range objects {
		all = append(all, extension.Migrate(ctx, w.Seed, object))
	}
	return errors.Join(all...)
}

// stopManagers stops whatever would replace machines whose nodes it does not hear, and waits until it has ended.
func (w *Withdrawal) stopManagers(ctx context.Context) error {
	for _, c := range components.ControlPlane {
		if !c.JudgesNodes {
			continue
		}
		if err := component.Stop(ctx, w.Seed, c.Workload(w.Plan.Namespace)); err != nil {
			return err
		}
	}
	return nil
}

// stop ends the API server and all else, and the etcds with their data: what these have and the other seed does not is
// lost, as who confirmed the loss of the seed knew.
func (w *Withdrawal) stop(ctx context.Context) error {
	return errors.Join(w.destroyControlPlane(ctx), w.destroyEtcds(ctx))
}

// leaveInfrastructure deletes the objects that extensions have let go of; it fails until all are gone.
func (w *Withdrawal) leaveInfrastructure(ctx context.Context) error {
	objects, err := w.objects(ctx)
	if err != nil {
		return err
	}
	var left []error
	for _, object := range objects {
		left = append(left, w.leave(ctx, object))
	}
	return errors.Join(left...)
}

// leave deletes an object once its extension has let go of it; it fails as long as the object is there.
func (w *Withdrawal) leave(ctx context.Context, object extension.Object) error {
	if extension.IsMigrated(object) {
		if err := extension.Destroy(ctx, w.Seed, object); err != nil {
			return err
		}
		return fmt.Errorf("%T %s is being deleted", object, object.GetName())
	}
	missing := extension.Check(object)
	if err := extension.Migrate(ctx, w.Seed, object); err != nil {
		return err
	}
	return fmt.Errorf("the extension of %T %s has not let go of it: %w", object, object.GetName(),
		cmp.Or(missing, errNotAsked))
}

// errNotAsked says that an extension did what it was asked for before, and nothing since.
var errNotAsked = errors.New("it has just been asked to")

// forgetMachines removes the objects of machines, and no machine: nobody acts on them any more.
func (w *Withdrawal) forgetMachines(ctx context.Context) error {
	// An extension that was at work may have started it again.
	if err := w.stopManagers(ctx); err != nil {
		return err
	}
	for _, list := range []client.ObjectList{
		&machinev1alpha1.MachineDeploymentList{}, &machinev1alpha1.MachineSetList{}, &machinev1alpha1.MachineList{},
		&machinev1alpha1.MachineClassList{},
	} {
		if err := w.Seed.List(ctx, list, client.InNamespace(w.Plan.Namespace)); err != nil {
			return fmt.Errorf("listing %T: %w", list, err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error { return w.forget(ctx, item.(client.Object)) })
		if err != nil {
			return err
		}
	}
	return nil
}

// forget deletes an object that others hold by finalizers.
func (w *Withdrawal) forget(ctx context.Context, object client.Object) error {
	before := client.MergeFrom(object.DeepCopyObject().(client.Object))
	object.SetFinalizers(nil)
	err := w.Seed.Patch(ctx, object, before)
	if err == nil {
		err = w.Seed.Delete(ctx, object)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}
