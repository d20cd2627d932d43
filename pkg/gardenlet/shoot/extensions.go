package shoot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
)

const (
	// deleteLifecycleAnnotation and timeoutAnnotation on an Extension say when it is to be deleted, and how long that may last. The
	// deletion of a shoot works with what is in the seed, without the registrations.
	deleteLifecycleAnnotation = "trellis.garden/delete-lifecycle"
	timeoutAnnotation         = "trellis.garden/reconcile-timeout"
)

// Lifecycle says when an extension is reconciled or deleted, relative to the parts of a control plane.
type Lifecycle = gardencorev1beta1.ControllerResourceLifecycleStrategy

// ExtensionPlan is an object of kind Extension.
type ExtensionPlan struct {
	Type           string
	ProviderConfig *runtime.RawExtension
	// Lifecycle and DeleteLifecycle say when it is reconciled and deleted.
	Lifecycle, DeleteLifecycle Lifecycle
	// Timeout bounds the wait for it.
	Timeout time.Duration
}

// planExtensions lists the shoot's extensions and those that are enabled for every shoot, by type.
func (p *Plan) planExtensions(in *Inputs) error {
	offered := offeredExtensions(in.Registrations)
	wanted := map[string]ExtensionPlan{}
	for name, resource := range offered {
		if automatic(resource, p.Workerless) {
			wanted[name] = planExtension(resource, nil)
		}
	}
	for i, asked := range in.Shoot.Spec.Extensions {
		resource, registered := offered[asked.Type]
		switch {
		case ptr.Deref(asked.Disabled, false):
			delete(wanted, asked.Type)
		case !registered:
			return fmt.Errorf("spec.extensions[%d].type: no ControllerRegistration offers an extension of type %q", i, asked.Type)
		default:
			wanted[asked.Type] = planExtension(resource, asked.ProviderConfig)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		p.Extensions = append(p.Extensions, wanted[name])
	}
	return nil
}

// offeredExtensions returns what is offered of kind Extension, by type.
func offeredExtensions(registrations []gardencorev1beta1.ControllerRegistration) map[string]gardencorev1beta1.ControllerResource {
	offered := map[string]gardencorev1beta1.ControllerResource{}
	for _, registration := range registrations {
		for _, resource := range registration.Spec.Resources {
			if resource.Kind == extensionsv1alpha1.ExtensionResource {
				offered[resource.Type] = resource
			}
		}
	}
	return offered
}

// automatic says whether an extension is enabled for every shoot.
func automatic(resource gardencorev1beta1.ControllerResource, workerless bool) bool {
	return slices.Contains(resource.AutoEnable, gardencorev1beta1.ClusterTypeShoot) && (!workerless || ptr.Deref(resource.WorkerlessSupported, false))
}

// planExtension says how an extension is to be treated that a registration offers.
func planExtension(resource gardencorev1beta1.ControllerResource, config *runtime.RawExtension) ExtensionPlan {
	lifecycle := ptr.Deref(resource.Lifecycle, gardencorev1beta1.ControllerResourceLifecycle{})
	plan := ExtensionPlan{
		Type: resource.Type, ProviderConfig: config, Timeout: extension.DefaultTiming.Timeout,
		Lifecycle:       ptr.Deref(lifecycle.Reconcile, gardencorev1beta1.AfterKubeAPIServer),
		DeleteLifecycle: ptr.Deref(lifecycle.Delete, gardencorev1beta1.BeforeKubeAPIServer),
	}
	if resource.ReconcileTimeout != nil {
		plan.Timeout = resource.ReconcileTimeout.Duration
	}
	return plan
}

func (e ExtensionPlan) timing() extension.Timing {
	return extension.Timing{Severe: extension.DefaultTiming.Severe, Timeout: e.Timeout}
}

// addExtensions adds the Extension objects of one lifecycle.
func (o *Operation) addExtensions(g *flow.Graph, lifecycle Lifecycle, after ...flow.TaskID) []flow.TaskID {
	var ready []flow.TaskID
	for _, wanted := range o.Plan.Extensions {
		if wanted.Lifecycle != lifecycle {
			continue
		}
		deployed := g.Add(flow.Task{
			Name: fmt.Sprintf("Deploying extension %s", wanted.Type), Dependencies: after,
			Fn: retried(func(ctx context.Context) error { return o.deployExtension(ctx, wanted) }),
		})
		ready = append(ready, g.Add(flow.Task{
			Name: fmt.Sprintf("Waiting until extension %s is ready", wanted.Type), Dependencies: []flow.TaskID{deployed},
			Fn: func(ctx context.Context) error {
				return extension.Wait(ctx, o.Seed, &extensionsv1alpha1.Extension{ObjectMeta: o.meta(wanted.Type)}, wanted.timing())
			},
		}))
	}
	return ready
}

// deployExtension writes an Extension.
func (o *Operation) deployExtension(ctx context.Context, wanted ExtensionPlan) error {
	object := &extensionsv1alpha1.Extension{ObjectMeta: o.meta(wanted.Type)}
	return extension.Deploy(ctx, o.Seed, object, true, func() {
		object.Annotations = component.Merge(object.Annotations, map[string]string{
			deleteLifecycleAnnotation: string(wanted.DeleteLifecycle), timeoutAnnotation: wanted.Timeout.String(),
		})
		object.Spec.DefaultSpec = extensionsv1alpha1.DefaultSpec{Type: wanted.Type, ProviderConfig: compact(wanted.ProviderConfig)}
	})
}

// addUnwantedExtensions adds the removal of Extensions that the shoot does not have any more.
func (o *Operation) addUnwantedExtensions(g *flow.Graph, after ...flow.TaskID) flow.TaskID {
	return g.Add(flow.Task{Name: "Removing extensions that are not wanted any more", Dependencies: after, Fn: func(ctx context.Context) error {
		return o.removeExtensions(ctx, o.unwanted)
	}})
}

// unwanted says whether the shoot does not have an Extension any more.
func (o *Operation) unwanted(object *extensionsv1alpha1.Extension) bool {
	return !slices.ContainsFunc(o.Plan.Extensions, func(wanted ExtensionPlan) bool { return wanted.Type == object.Name })
}

// addExtensionDeletion adds the deletion of the Extensions of one lifecycle.
func (o *Operation) addExtensionDeletion(g *flow.Graph, lifecycle Lifecycle, after ...flow.TaskID) flow.TaskID {
	return g.Add(flow.Task{Name: fmt.Sprintf("Deleting extensions (%s)", lifecycle), Dependencies: after, Fn: func(ctx context.Context) error {
		return o.removeExtensions(ctx, func(object *extensionsv1alpha1.Extension) bool { return deleteLifecycle(object) == lifecycle })
	}})
}

// deleteLifecycle says when an Extension is deleted: before the kube-apiserver, unless its annotation says otherwise.
func deleteLifecycle(object *extensionsv1alpha1.Extension) Lifecycle {
	switch lifecycle := Lifecycle(object.Annotations[deleteLifecycleAnnotation]); lifecycle {
	case gardencorev1beta1.AfterKubeAPIServer, gardencorev1beta1.AfterWorker:
		return lifecycle
	}
	return gardencorev1beta1.BeforeKubeAPIServer
}

// removeExtensions deletes the Extensions of the namespace that are chosen, and waits until they are gone.
func (o *Operation) removeExtensions(ctx context.Context, chosen func(*extensionsv1alpha1.Extension) bool) error {
	list := &extensionsv1alpha1.ExtensionList{}
	if err := o.Seed.List(ctx, list, client.InNamespace(o.Plan.Namespace)); err != nil {
		return fmt.Errorf("listing extensions: %w", err)
	}
	var waits []flow.TaskFn
	for i := range list.Items {
		object := &list.Items[i]
		if !chosen(object) {
			continue
		}
		if err := extension.Destroy(ctx, o.Seed, object); err != nil {
			return err
		}
		waits = append(waits, func(ctx context.Context) error { return extension.WaitGone(ctx, o.Seed, object, timingOf(object)) })
	}
	if len(waits) == 0 {
		return nil
	}
	return flow.Parallel(waits...)(ctx)
}

// timingOf returns how long the deletion of an Extension may last.
func timingOf(object *extensionsv1alpha1.Extension) extension.Timing {
	timing := extension.DefaultTiming
	if timeout, err := time.ParseDuration(object.Annotations[timeoutAnnotation]); err == nil {
		timing.Timeout = timeout
	}
	return timing
}
