package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
)

// Lifecycle says when an extension is reconciled or deleted, relative to the parts of a control plane.
type Lifecycle = gardencorev1beta1.ControllerResourceLifecycleStrategy

// Extension is an object of kind Extension.
type Extension struct {
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
	wanted := map[string]Extension{}
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
			return fmt.Errorf("spec.extensions[%d].type: no ControllerRegistration offers an extension of type %q", i,
				asked.Type)
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
func offeredExtensions(
	registrations []gardencorev1beta1.ControllerRegistration) map[string]gardencorev1beta1.ControllerResource {
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
	return slices.Contains(resource.AutoEnable, gardencorev1beta1.ClusterTypeShoot) &&
		(!workerless || ptr.Deref(resource.WorkerlessSupported, false))
}

// planExtension says how an extension is to be treated that a registration offers.
func planExtension(resource gardencorev1beta1.ControllerResource, config *runtime.RawExtension) Extension {
	lifecycle := ptr.Deref(resource.Lifecycle, gardencorev1beta1.ControllerResourceLifecycle{})
	plan := Extension{
		Type: resource.Type, ProviderConfig: config, Timeout: extension.DefaultTiming.Timeout,
		Lifecycle:       ptr.Deref(lifecycle.Reconcile, gardencorev1beta1.AfterKubeAPIServer),
		DeleteLifecycle: ptr.Deref(lifecycle.Delete, gardencorev1beta1.BeforeKubeAPIServer),
	}
	if resource.ReconcileTimeout != nil {
		plan.Timeout = resource.ReconcileTimeout.Duration
	}
	return plan
}

// Timing bounds the wait for it.
func (e Extension) Timing() extension.Timing {
	return extension.Timing{Severe: extension.DefaultTiming.Severe, Timeout: e.Timeout}
}
