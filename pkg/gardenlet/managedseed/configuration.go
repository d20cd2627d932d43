package managedseed

import (
	"encoding/json"
	"fmt"

	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/deployment"
	"github.com/trellis-garden/trellis/pkg/gardenletconfig"
)

const (
	bootstrapSecretName  = "gardenlet-kubeconfig-bootstrap"
	kubeconfigSecretName = "gardenlet-kubeconfig"
)

// notInherited are the parts of a gardenlet's configuration that are its own: a managed seed has other addresses,
// another Seed and another access to the garden.
var notInherited = []string{
	"apiVersion", "kind", "seedConfig", "gateway", "exposureClassHandlers", "gardenClientConnection",
}

// configuration returns the configuration of the gardenlet of a managed seed: what the ManagedSeed says, then what its
// shoot is like, then, if it is to be merged, what the parent's configuration says.
func configuration(managedSeed *seedmanagementv1alpha1.ManagedSeed, shoot *gardencorev1beta1.Shoot,
	parent *config.Configuration) (map[string]any, error) {
	said, err := gardenletconfig.ConfigOf(managedSeed.Spec.Gardenlet.Config)
	if err != nil {
		return nil, fmt.Errorf("spec.gardenlet.config: %w", err)
	}
	fromShoot, err := gardenletconfig.Fields(map[string]any{
		"seedConfig": map[string]any{"spec": gardenletconfig.SeedSpecOfShoot(shoot)},
	})
	if err != nil {
		return nil, err
	}
	result := gardenletconfig.Merge(fromShoot, said)
	if ptr.Deref(managedSeed.Spec.Gardenlet.MergeWithParent, true) {
		inherited, err := inheritance(parent)
		if err != nil {
			return nil, err
		}
		result = gardenletconfig.Merge(inherited, result)
	}
	own, err := gardenletconfig.Fields(map[string]any{
		"apiVersion": seedmanagementv1alpha1.GardenletConfigurationAPIVersion,
		"kind":       seedmanagementv1alpha1.GardenletConfigurationKind,
		"seedConfig": map[string]any{"metadata": map[string]any{"name": managedSeed.Name}},
	})
	if err != nil {
		return nil, err
	}
	return gardenletconfig.Merge(withConnection(result, managedSeed), own), nil
}

// inheritance is what a managed seed takes over from the gardenlet that installs it: settings of controllers and
// capacity, and of the Seed the domains and where backups go.
func inheritance(parent *config.Configuration) (map[string]any, error) {
	all, err := gardenletconfig.Fields(parent)
	if err != nil {
		return nil, err
	}
	for _, name := range notInherited {
		delete(all, name)
	}
	inherited := gardenletconfig.InheritedSeedSpec(&parent.SeedConfig.Spec)
	seed, err := gardenletconfig.Fields(map[string]any{"seedConfig": map[string]any{"spec": inherited}})
	if err != nil {
		return nil, err
	}
	return gardenletconfig.Merge(all, seed), nil
}

// withConnection adds where gardenlet keeps its kubeconfig and finds its first one, unless the configuration says so or
// gives it a kubeconfig.
func withConnection(result map[string]any, managedSeed *seedmanagementv1alpha1.ManagedSeed) map[string]any {
	if ptr.Deref(managedSeed.Spec.Gardenlet.Bootstrap,
		seedmanagementv1alpha1.BootstrapToken) == seedmanagementv1alpha1.BootstrapNone {
		return result
	}
	secret := func(name string) map[string]any {
		return map[string]any{"namespace": deployment.Namespace, "name": name}
	}
	return gardenletconfig.Merge(map[string]any{"gardenClientConnection": map[string]any{
		"bootstrapKubeconfig": secret(bootstrapSecretName), "kubeconfigSecret": secret(kubeconfigSecretName),
	}}, result)
}

// parse holds a configuration against what gardenlet accepts.
func parse(configuration map[string]any) (*config.Configuration, error) {
	raw, err := json.Marshal(configuration)
	if err != nil {
		return nil, err
	}
	parsed, err := config.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("spec.gardenlet.config: %w", err)
	}
	return parsed, nil
}
