package extensions

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
)

// AddRemoval adds the deletion of all extension objects of a kind in the namespace, and the wait for it.
func (e *Objects) AddRemoval(g *flow.Graph, what string, list client.ObjectList, timing extension.Timing,
	after ...flow.TaskID) flow.TaskID {
	return g.Add(flow.Task{
		Name: "Deleting " + what, Dependencies: after,
		Fn: func(ctx context.Context) error { return e.removeAll(ctx, list, timing) },
	})
}

// removeAll deletes the extension objects of a kind and waits until they are gone.
func (e *Objects) removeAll(ctx context.Context, list client.ObjectList, timing extension.Timing) error {
	list = list.DeepCopyObject().(client.ObjectList)
	if err := e.Seed.List(ctx, list, client.InNamespace(e.Shoot.Namespace)); err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	var waits []flow.TaskFn
	for _, object := range extensionObjects(list) {
		if err := extension.Destroy(ctx, e.Seed, object); err != nil {
			return err
		}
		waits = append(waits, func(ctx context.Context) error { return waitGone(ctx, e.Seed, object, timing) })
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
