// Package shootstate keeps in the garden, in the ShootState of each shoot, what another seed would need to go on with
// its control plane, beside the backup of its etcd: the authorities and keys that others have got to know, the machines
// that there are, and what extensions ask to be kept. And it reads that on the other seed.
package shootstate

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/machinestate"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// Types of what is kept by gardenlet, as published for Gardener.
const (
	typeSecret   = "secret"
	typeMachines = "machine-state"
)

// collect returns what is to be kept of a control plane's namespace, always in the same order.
func collect(found []corev1.Secret, machines *machinestate.State,
	objects []extension.Object) (gardencorev1beta1.ShootStateSpec, error) {
	spec := gardencorev1beta1.ShootStateSpec{}
	for i := range found {
		secret := &found[i]
		if secret.DeletionTimestamp != nil || !secrets.IsPersistent(secret) {
			continue
		}
		data, err := json.Marshal(secret.Data)
		if err != nil {
			return spec, err
		}
		spec.Gardener = append(spec.Gardener, gardencorev1beta1.GardenerResourceData{
			Name: secret.Name, Type: typeSecret, Data: runtime.RawExtension{Raw: data}, Labels: secret.Labels,
		})
	}
	slices.SortFunc(spec.Gardener, func(a, b gardencorev1beta1.GardenerResourceData) int {
		return strings.Compare(a.Name, b.Name)
	})
	if len(machines.MachineDeployments) > 0 {
		packed, err := machinestate.Pack(machines)
		if err != nil {
			return spec, err
		}
		spec.Gardener = append(spec.Gardener, gardencorev1beta1.GardenerResourceData{
			Name: typeMachines, Type: typeMachines, Data: *packed,
		})
	}
	spec.Extensions = statesOf(objects)
	return spec, nil
}

// statesOf are the states that extensions report. That of a Worker tells of the machines that it was restored with; its
// machines of now are kept apart.
func statesOf(objects []extension.Object) []gardencorev1beta1.ExtensionResourceState {
	var states []gardencorev1beta1.ExtensionResourceState
	for _, object := range objects {
		state, resources := extension.StateOf(object), object.GetExtensionStatus().Resources
		if _, isWorker := object.(*extensionsv1alpha1.Worker); isWorker {
			state = nil
		}
		if state == nil && len(resources) == 0 || object.GetDeletionTimestamp() != nil {
			continue
		}
		kept := gardencorev1beta1.ExtensionResourceState{
			Kind: kindOf(object), Name: new(object.GetName()), State: state.DeepCopy(), Resources: resources,
		}
		if osc, ok := object.(*extensionsv1alpha1.OperatingSystemConfig); ok {
			kept.Purpose = new(string(osc.Spec.Purpose))
		}
		states = append(states, kept)
	}
	slices.SortFunc(states, func(a, b gardencorev1beta1.ExtensionResourceState) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(*a.Name, *b.Name))
	})
	return states
}

func kindOf(object extension.Object) string { return reflect.TypeOf(object).Elem().Name() }
