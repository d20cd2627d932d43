package shootstate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/machinestate"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// Restored is what a control plane begins with on another seed.
type Restored struct {
	// Secrets are the authorities and keys.
	Secrets []*corev1.Secret
	// States are those of extension objects.
	States extension.States
}

// Read reads what was kept of a shoot.
func Read(ctx context.Context, garden client.Client, shoot plan.Identity) (*Restored, error) {
	state := &gardencorev1beta1.ShootState{}
	key := client.ObjectKey{Namespace: shoot.ShootNamespace, Name: shoot.ShootName}
	if err := garden.Get(ctx, key, state); err != nil {
		return nil, fmt.Errorf("reading ShootState %s, without which the control plane cannot be restored: %w", key,
			err)
	}
	restored, err := restoredOf(&state.Spec, shoot)
	if err != nil {
		return nil, fmt.Errorf("ShootState %s: %w", key, err)
	}
	return restored, nil
}

// restoredOf takes apart what was kept. Another seed has written it: what gardenlet would not have kept is refused.
func restoredOf(spec *gardencorev1beta1.ShootStateSpec, shoot plan.Identity) (*Restored, error) {
	restored := &Restored{States: extension.States{}}
	for i := range spec.Extensions {
		if err := restored.addState(&spec.Extensions[i]); err != nil {
			return nil, fmt.Errorf("spec.extensions[%d]: %w", i, err)
		}
	}
	for i := range spec.Gardener {
		if err := restored.add(&spec.Gardener[i], shoot); err != nil {
			return nil, fmt.Errorf("spec.gardener[%d] %s: %w", i, spec.Gardener[i].Name, err)
		}
	}
	if len(restored.Secrets) == 0 {
		return nil, errors.New("it has no authorities and keys")
	}
	return restored, nil
}

func (r *Restored) add(kept *gardencorev1beta1.GardenerResourceData, shoot plan.Identity) error {
	switch kept.Type {
	case typeMachines:
		text, err := machinestate.Unpack(kept.Data.Raw)
		if err != nil {
			return err
		}
		worker := extension.StateKey{Kind: extensionsv1alpha1.WorkerResource, Name: shoot.ShootName}
		r.States[worker] = &runtime.RawExtension{Raw: text}
		return nil
	case typeSecret:
		var data map[string][]byte
		if err := json.Unmarshal(kept.Data.Raw, &data); err != nil {
			return err
		}
		secret := secrets.Restored(shoot.Namespace, kept.Name, kept.Labels, data)
		if secret == nil {
			return errors.New("this is no secret that gardenlet keeps")
		}
		r.Secrets = append(r.Secrets, secret)
		return nil
	}
	return fmt.Errorf("type %q is neither %q nor %q", kept.Type, typeSecret, typeMachines)
}

func (r *Restored) addState(kept *gardencorev1beta1.ExtensionResourceState) error {
	if len(kept.Resources) > 0 {
		return fmt.Errorf("%s refers to objects, such as %s, which are not kept", kept.Kind, kept.Resources[0].Name)
	}
	if kept.Name == nil {
		return fmt.Errorf("%s has no name", kept.Kind)
	}
	r.States[extension.StateKey{Kind: kept.Kind, Name: *kept.Name}] = kept.State
	return nil
}
