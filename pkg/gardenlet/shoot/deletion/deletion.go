// Package deletion removes shoots: first what is in the cluster, then its machines and its control plane.
package deletion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/managedresources"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/await"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extensionrights"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/backup"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/cluster"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/controlplane"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/extensions"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/publication"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/shootstate"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/tasks"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// deletionTimeout bounds the wait for a namespace to be gone.
const deletionTimeout = 5 * time.Minute

// Deletion removes one shoot. What there is of it decides, and not what there should be.
type Deletion struct {
	Plan       *plan.Deletion
	Garden     client.Client
	Seed       client.WithWatch
	Extensions *extensions.Objects
	// Components are only deleted, so they have no values.
	Components *components.Builder
}

// New removes the shoot of a plan.
func New(p *plan.Deletion, garden client.Client, seed client.WithWatch) *Deletion {
	return &Deletion{
		Plan: p, Garden: garden, Seed: seed, Extensions: &extensions.Objects{Shoot: p.Identity, Seed: seed},
		Components: &components.Builder{Seed: seed, Namespace: p.Namespace},
	}
}

// Flow builds the graph that removes a shoot. It works on what is there, however little that is: nothing in it relies
// on the plan of what should be there, so a shoot that is half created goes away as well. First the cluster is
// emptied from within, so that its controllers take away what they made in the infrastructure.
func (d *Deletion) Flow() (*flow.Flow, error) {
	g := flow.NewGraph("Shoot cluster deletion")
	initialized := g.Add(flow.Task{Name: "Reading secrets", Fn: tasks.Retried(d.readSecrets)})
	kept := g.Add(flow.Task{
		Name: "Leaving objects of the shoot to its end", Fn: tasks.Retried(d.keepObjects),
		Dependencies: []flow.TaskID{initialized},
	})

	cleaned := d.addCleanup(g, g.Add(flow.Task{
		Name: "Stopping autoscalers", Fn: tasks.Rollout(d.stopAutoscalers),
		Dependencies: []flow.TaskID{initialized},
	}))

	worker := d.Extensions.AddRemoval(g, "worker pools", &extensionsv1alpha1.WorkerList{}, extension.WorkerTiming,
		cleaned)
	early := d.Extensions.AddDeletion(g, gardencorev1beta1.BeforeKubeAPIServer, cleaned)
	extensions := d.Extensions.AddDeletion(g, gardencorev1beta1.AfterWorker, worker, early)
	network := d.Extensions.AddRemoval(g, "network plugin", &extensionsv1alpha1.NetworkList{}, extension.DefaultTiming,
		worker, kept)
	runtimes := d.Extensions.AddRemoval(g, "container runtimes", &extensionsv1alpha1.ContainerRuntimeList{},
		extension.DefaultTiming, worker)
	provider := d.Extensions.AddRemoval(g, "provider's control plane components",
		&extensionsv1alpha1.ControlPlaneList{}, extension.DefaultTiming, worker, network, kept)
	osc := d.Extensions.AddRemoval(g, "operating system configurations",
		&extensionsv1alpha1.OperatingSystemConfigList{}, extension.DefaultTiming, worker)
	infrastructure := d.Extensions.AddRemoval(g, "infrastructure", &extensionsv1alpha1.InfrastructureList{},
		extension.InfrastructureTiming, worker, provider, network)

	resources := g.Add(flow.Task{
		Name:         "Deleting managed resources",
		Fn:           flow.TaskFn(d.deleteManagedResources).RetryUntilTimeout(tasks.RetryInterval, deletionTimeout),
		Dependencies: []flow.TaskID{network, provider, extensions, runtimes, kept},
	})
	controlPlane := g.Add(flow.Task{
		Name: "Deleting control plane", Fn: tasks.Retried(d.destroyControlPlane),
		Dependencies: []flow.TaskID{resources, worker},
	})
	records := d.Extensions.AddRemoval(g, "DNS records", &extensionsv1alpha1.DNSRecordList{}, extension.DNSRecordTiming,
		controlPlane)
	late := d.Extensions.AddDeletion(g, gardencorev1beta1.AfterKubeAPIServer, controlPlane)
	etcds := g.Add(flow.Task{
		Name: "Deleting etcds", Fn: tasks.Retried(d.destroyEtcds), Dependencies: []flow.TaskID{controlPlane},
	})
	namespace := g.Add(flow.Task{
		Name: "Deleting namespace", Fn: d.deleteNamespace,
		Dependencies: []flow.TaskID{etcds, records, infrastructure, osc, late},
	})
	garden := g.Add(flow.Task{
		Name: "Removing certificate authorities from the garden", Fn: tasks.Retried(d.removeFromGarden),
		Dependencies: []flow.TaskID{controlPlane},
	})
	g.Add(flow.Task{
		Name: "Deleting backup entry", Fn: tasks.Retried(d.removeBackup), Dependencies: []flow.TaskID{namespace},
	})
	g.Add(flow.Task{
		Name: "Deleting Cluster", Fn: tasks.Retried(d.deleteCluster), Dependencies: []flow.TaskID{namespace, garden},
	})
	return g.Compile()
}

// stopAutoscalers keeps autoscalers from making machines while others go.
func (d *Deletion) stopAutoscalers(ctx context.Context) error {
	return components.Stop(ctx, d.Seed, d.Plan.Namespace, components.Autoscalers)
}

// removeFromGarden deletes what users got to know, and what was kept for another seed.
func (d *Deletion) removeFromGarden(ctx context.Context) error {
	return errors.Join(publication.Remove(ctx, d.Garden, d.Plan.Identity),
		shootstate.Remove(ctx, d.Garden, d.Plan.Identity))
}

// removeBackup gives up the backups, which nothing writes any more.
func (d *Deletion) removeBackup(ctx context.Context) error {
	return backup.Remove(ctx, d.Garden, d.Plan.Identity)
}

// deleteCluster removes what extensions read of the garden.
func (d *Deletion) deleteCluster(ctx context.Context) error {
	return cluster.Delete(ctx, d.Seed, d.Plan.Namespace)
}

// readSecrets gives the components the secrets that are there.
func (d *Deletion) readSecrets(ctx context.Context) error {
	manager, err := secrets.New(ctx, d.Seed, d.Plan.Namespace, secrets.Options{})
	d.Components.Secrets = manager
	return err
}

// keepObjects tells resource-manager not to delete objects inside the shoot: they go with its etcd, and the API
// server may never have been up.
func (d *Deletion) keepObjects(ctx context.Context) error {
	list, err := managedresources.List(ctx, d.Seed, d.Plan.Namespace)
	if err != nil {
		return err
	}
	for _, resource := range list {
		if resource.Spec.Class != nil || ptr.Deref(resource.Spec.KeepObjects, false) {
			continue
		}
		patch := client.MergeFrom(resource.DeepCopy())
		resource.Spec.KeepObjects = new(true)
		if err := client.IgnoreNotFound(d.Seed.Patch(ctx, &resource, patch)); err != nil {
			return fmt.Errorf("ManagedResource %s: %w", client.ObjectKeyFromObject(&resource), err)
		}
	}
	return nil
}

// deleteManagedResources deletes all ManagedResources of the namespace; it fails until they are gone.
func (d *Deletion) deleteManagedResources(ctx context.Context) error {
	if err := d.keepObjects(ctx); err != nil {
		return err
	}
	list, err := managedresources.List(ctx, d.Seed, d.Plan.Namespace)
	if err != nil {
		return err
	}
	for _, resource := range list {
		if resource.DeletionTimestamp != nil {
			continue
		}
		if err := client.IgnoreNotFound(d.Seed.Delete(ctx, &resource)); err != nil {
			return err
		}
	}
	if len(list) > 0 {
		return fmt.Errorf("%d ManagedResources are left, first %s", len(list), list[0].Name)
	}
	return nil
}

// destroyControlPlane deletes everything that runs but the etcds.
func (d *Deletion) destroyControlPlane(ctx context.Context) error {
	return errors.Join(d.destroy(ctx, func(s components.Stage) bool { return s != components.Stores }),
		component.Delete(ctx, d.Seed, controlplane.Route(d.Plan.Identity)))
}

// destroy deletes the components of some stages, from the end of their list to its beginning.
func (d *Deletion) destroy(ctx context.Context, of func(components.Stage) bool) error {
	var all []error
	for _, c := range slices.Backward(components.ControlPlane) {
		if of(c.Stage) && c.Recipe.Build != nil {
			all = append(all, c.Build(d.Components).Destroy(ctx))
		}
	}
	return errors.Join(all...)
}

// destroyEtcds deletes the etcds and their volumes.
func (d *Deletion) destroyEtcds(ctx context.Context) error {
	if err := d.destroy(ctx, func(s components.Stage) bool { return s == components.Stores }); err != nil {
		return err
	}
	err := d.Seed.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(d.Plan.Namespace))
	if err != nil {
		return fmt.Errorf("deleting the volumes of the etcds: %w", err)
	}
	return nil
}

// deleteNamespace deletes the namespace and waits until it is gone, and with it everything that is left.
func (d *Deletion) deleteNamespace(ctx context.Context) error {
	if err := extensionrights.Forget(ctx, d.Seed, d.Plan.Namespace); err != nil {
		return err
	}
	return d.deleteOwnNamespace(ctx)
}

// deleteOwnNamespace deletes that of the control plane, and not those beside it.
func (d *Deletion) deleteOwnNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.Plan.Namespace}}
	if err := client.IgnoreNotFound(d.Seed.Delete(ctx, namespace)); err != nil {
		return fmt.Errorf("deleting Namespace %s: %w", namespace.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, deletionTimeout)
	defer cancel()
	return await.Gone(ctx, d.Seed, namespace, func(namespace *corev1.Namespace) error {
		for _, condition := range namespace.Status.Conditions {
			if condition.Status == corev1.ConditionTrue && condition.Message != "" {
				return errors.New(condition.Message)
			}
		}
		return errors.New("its content is being deleted")
	})
}
