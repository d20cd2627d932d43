package shoot

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
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/await"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extensionrights"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// deletionTimeout bounds the wait for a namespace to be gone.
const deletionTimeout = 5 * time.Minute

// DeletionFlow builds the graph that removes a shoot. It works on what is there, however little that is: nothing in it
// relies on the plan of what should be there, so a shoot that is half created goes away as well. First the cluster is emptied
// from within, so that its controllers take away what they made in the infrastructure.
func (o *Operation) DeletionFlow() (*flow.Flow, error) {
	g := flow.NewGraph("Shoot cluster deletion")
	initialized := g.Add(flow.Task{Name: "Reading secrets", Fn: retried(o.readSecrets)})
	kept := g.Add(flow.Task{Name: "Leaving objects of the shoot to its end", Fn: retried(o.keepObjects), Dependencies: []flow.TaskID{initialized}})

	cleaned := o.addCleanup(g, g.Add(flow.Task{
		Name: "Stopping cluster-autoscaler", Fn: rollout(o.stopAutoscaler), Dependencies: []flow.TaskID{initialized},
	}))

	worker := o.removeExtensionKind(g, "worker pools", &extensionsv1alpha1.WorkerList{}, extension.WorkerTiming, cleaned)
	early := o.addExtensionDeletion(g, gardencorev1beta1.BeforeKubeAPIServer, cleaned)
	extensions := o.addExtensionDeletion(g, gardencorev1beta1.AfterWorker, worker, early)
	network := o.removeExtensionKind(g, "network plugin", &extensionsv1alpha1.NetworkList{}, extension.DefaultTiming, worker, kept)
	runtimes := o.removeExtensionKind(g, "container runtimes", &extensionsv1alpha1.ContainerRuntimeList{}, extension.DefaultTiming, worker)
	provider := o.removeExtensionKind(g, "provider's control plane components", &extensionsv1alpha1.ControlPlaneList{}, extension.DefaultTiming, worker, network, kept)
	osc := o.removeExtensionKind(g, "operating system configurations", &extensionsv1alpha1.OperatingSystemConfigList{}, extension.DefaultTiming, worker)
	infrastructure := o.removeExtensionKind(g, "infrastructure", &extensionsv1alpha1.InfrastructureList{}, extension.InfrastructureTiming, worker, provider, network)

	resources := g.Add(flow.Task{
		Name: "Deleting managed resources", Fn: flow.TaskFn(o.deleteManagedResources).RetryUntilTimeout(applyInterval, deletionTimeout),
		Dependencies: []flow.TaskID{network, provider, extensions, runtimes, kept},
	})
	controlPlane := g.Add(flow.Task{
		Name: "Deleting control plane", Fn: retried(o.destroyControlPlane), Dependencies: []flow.TaskID{resources, worker},
	})
	records := o.removeExtensionKind(g, "DNS records", &extensionsv1alpha1.DNSRecordList{}, extension.DNSRecordTiming, controlPlane)
	late := o.addExtensionDeletion(g, gardencorev1beta1.AfterKubeAPIServer, controlPlane)
	etcds := g.Add(flow.Task{Name: "Deleting etcds", Fn: retried(o.destroyEtcds), Dependencies: []flow.TaskID{controlPlane}})
	namespace := g.Add(flow.Task{
		Name: "Deleting namespace", Fn: o.deleteNamespace, Dependencies: []flow.TaskID{etcds, records, infrastructure, osc, late},
	})
	garden := g.Add(flow.Task{Name: "Removing certificate authorities from the garden", Fn: retried(o.removeFromGarden), Dependencies: []flow.TaskID{controlPlane}})
	g.Add(flow.Task{Name: "Deleting Cluster", Fn: retried(o.deleteCluster), Dependencies: []flow.TaskID{namespace, garden}})
	return g.Compile()
}

// readSecrets gives the components the secrets that are there.
func (o *Operation) readSecrets(ctx context.Context) error {
	manager, err := secrets.New(ctx, o.Seed, o.Plan.Namespace, secrets.Options{})
	o.secrets = manager
	return err
}

// removeExtensionKind adds the deletion of all extension objects of a kind in the namespace, and the wait for it.
func (o *Operation) removeExtensionKind(g *flow.Graph, what string, list client.ObjectList, timing extension.Timing, after ...flow.TaskID) flow.TaskID {
	return g.Add(flow.Task{
		Name: "Deleting " + what, Dependencies: after,
		Fn: func(ctx context.Context) error { return o.removeAll(ctx, list, timing) },
	})
}

// removeAll deletes the extension objects of a kind and waits until they are gone.
func (o *Operation) removeAll(ctx context.Context, list client.ObjectList, timing extension.Timing) error {
	list = list.DeepCopyObject().(client.ObjectList)
	if err := o.Seed.List(ctx, list, client.InNamespace(o.Plan.Namespace)); err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	var waits []flow.TaskFn
	for _, object := range extensionObjects(list) {
		if err := extension.Destroy(ctx, o.Seed, object); err != nil {
			return err
		}
		waits = append(waits, func(ctx context.Context) error { return waitGone(ctx, o.Seed, object, timing) })
	}
	if len(waits) == 0 {
		return nil
	}
	return flow.Parallel(waits...)(ctx)
}

// extensionObjects returns the items of a list of extension objects.
func extensionObjects(list client.ObjectList) []extension.Object {
	var objects []extension.Object
	switch l := list.(type) {
	case *extensionsv1alpha1.WorkerList:
		objects = pointers[extensionsv1alpha1.Worker](l.Items)
	case *extensionsv1alpha1.NetworkList:
		objects = pointers[extensionsv1alpha1.Network](l.Items)
	case *extensionsv1alpha1.ContainerRuntimeList:
		objects = pointers[extensionsv1alpha1.ContainerRuntime](l.Items)
	case *extensionsv1alpha1.ControlPlaneList:
		objects = pointers[extensionsv1alpha1.ControlPlane](l.Items)
	case *extensionsv1alpha1.OperatingSystemConfigList:
		objects = pointers[extensionsv1alpha1.OperatingSystemConfig](l.Items)
	case *extensionsv1alpha1.InfrastructureList:
		objects = pointers[extensionsv1alpha1.Infrastructure](l.Items)
	case *extensionsv1alpha1.DNSRecordList:
		objects = pointers[extensionsv1alpha1.DNSRecord](l.Items)
	}
	return objects
}

// pointers returns pointers to the items.
func pointers[T any, P interface {
	*T
	extension.Object
}](items []T) []extension.Object {
	var objects []extension.Object
	for i := range items {
		objects = append(objects, P(&items[i]))
	}
	return objects
}

// waitGone is extension.WaitGone for an object whose type is only known at run time.
func waitGone(ctx context.Context, seed client.WithWatch, object extension.Object, timing extension.Timing) error {
	switch typed := object.(type) {
	case *extensionsv1alpha1.Worker:
		return extension.WaitGone(ctx, seed, typed, timing)
	case *extensionsv1alpha1.Network:
		return extension.WaitGone(ctx, seed, typed, timing)
	case *extensionsv1alpha1.ContainerRuntime:
		return extension.WaitGone(ctx, seed, typed, timing)
	case *extensionsv1alpha1.ControlPlane:
		return extension.WaitGone(ctx, seed, typed, timing)
	case *extensionsv1alpha1.OperatingSystemConfig:
		return extension.WaitGone(ctx, seed, typed, timing)
	case *extensionsv1alpha1.Infrastructure:
		return extension.WaitGone(ctx, seed, typed, timing)
	case *extensionsv1alpha1.DNSRecord:
		return extension.WaitGone(ctx, seed, typed, timing)
	}
	return fmt.Errorf("%T is not an extension object that a shoot has", object)
}

// managedResources lists the ManagedResources that are applied to the shoot.
func (o *Operation) managedResources(ctx context.Context) ([]resourcesv1alpha1.ManagedResource, error) {
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := o.Seed.List(ctx, list, client.InNamespace(o.Plan.Namespace)); err != nil {
		return nil, fmt.Errorf("listing ManagedResources: %w", err)
	}
	return list.Items, nil
}

// keepObjects tells resource-manager not to delete objects inside the shoot: they go with its etcd, and the API server may
// never have been up.
func (o *Operation) keepObjects(ctx context.Context) error {
	list, err := o.managedResources(ctx)
	if err != nil {
		return err
	}
	for _, resource := range list {
		if resource.Spec.Class != nil || ptr.Deref(resource.Spec.KeepObjects, false) {
			continue
		}
		patch := client.MergeFrom(resource.DeepCopy())
		resource.Spec.KeepObjects = ptr.To(true)
		if err := client.IgnoreNotFound(o.Seed.Patch(ctx, &resource, patch)); err != nil {
			return fmt.Errorf("ManagedResource %s: %w", client.ObjectKeyFromObject(&resource), err)
		}
	}
	return nil
}

// deleteManagedResources deletes all ManagedResources of the namespace; it fails until they are gone.
func (o *Operation) deleteManagedResources(ctx context.Context) error {
	if err := o.keepObjects(ctx); err != nil {
		return err
	}
	list, err := o.managedResources(ctx)
	if err != nil {
		return err
	}
	for _, resource := range list {
		if resource.DeletionTimestamp != nil {
			continue
		}
		if err := client.IgnoreNotFound(o.Seed.Delete(ctx, &resource)); err != nil {
			return err
		}
	}
	if len(list) > 0 {
		return fmt.Errorf("%d ManagedResources are left, first %s", len(list), list[0].Name)
	}
	return nil
}

// destroyControlPlane deletes everything that runs but the etcds.
func (o *Operation) destroyControlPlane(ctx context.Context) error {
	return errors.Join(o.destroy(ctx, false), component.Delete(ctx, o.Seed, o.route()))
}

// destroy deletes the etcds, or all other components of the control plane, in the reverse order of their start.
func (o *Operation) destroy(ctx context.Context, etcds bool) error {
	var all []error
	for _, c := range slices.Backward(controlPlaneComponents) {
		if c.etcd == etcds && c.build != nil {
			all = append(all, c.build(o).Destroy(ctx))
		}
	}
	return errors.Join(all...)
}

// destroyEtcds deletes the etcds and their volumes.
func (o *Operation) destroyEtcds(ctx context.Context) error {
	if err := o.destroy(ctx, true); err != nil {
		return err
	}
	err := o.Seed.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(o.Plan.Namespace))
	if err != nil {
		return fmt.Errorf("deleting the volumes of the etcds: %w", err)
	}
	return nil
}

// deleteNamespace deletes the namespace and waits until it is gone, and with it everything that is left.
func (o *Operation) deleteNamespace(ctx context.Context) error {
	if err := extensionrights.Forget(ctx, o.Seed, o.Plan.Namespace); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Plan.Namespace}}
	if err := client.IgnoreNotFound(o.Seed.Delete(ctx, namespace)); err != nil {
		return fmt.Errorf("deleting Namespace %s: %w", namespace.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, deletionTimeout)
	defer cancel()
	return await.Gone(ctx, o.Seed, namespace, func(namespace *corev1.Namespace) error {
		for _, condition := range namespace.Status.Conditions {
			if condition.Status == corev1.ConditionTrue && condition.Message != "" {
				return errors.New(condition.Message)
			}
		}
		return errors.New("its content is being deleted")
	})
}
