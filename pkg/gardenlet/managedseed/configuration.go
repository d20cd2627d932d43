package managedseed

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/deployment"
)

const (
	bootstrapSecretName   = "gardenlet-kubeconfig-bootstrap"
	kubeconfigSecretName  = "gardenlet-kubeconfig"
	ingressControllerKind = "nginx"
)

// notInherited are the parts of a gardenlet's configuration that are its own: a managed seed has another address, another Seed
// and another access to the garden.
var notInherited = []string{"apiVersion", "kind", "seedConfig", "gateway", "gardenClientConnection"}

// configuration returns the configuration of the gardenlet of a managed seed: what the ManagedSeed says, then what its shoot is
// like, then, if it is to be merged, what the parent's configuration says.
func configuration(managedSeed *seedmanagementv1alpha1.ManagedSeed, shoot *gardencorev1beta1.Shoot, parent *config.Configuration) (map[string]any, error) {
	said, err := deployment.ConfigOf(managedSeed.Spec.Gardenlet.Config)
	if err != nil {
		return nil, fmt.Errorf("spec.gardenlet.config: %w", err)
	}
	fromShoot, err := deployment.Fields(map[string]any{"seedConfig": seedOf(shoot)})
	if err != nil {
		return nil, err
	}
	result := deployment.Merge(fromShoot, said)
	if ptr.Deref(managedSeed.Spec.Gardenlet.MergeWithParent, true) {
		inherited, err := inheritance(parent)
		if err != nil {
			return nil, err
		}
		result = deployment.Merge(inherited, result)
	}
	own, err := deployment.Fields(map[string]any{
		"apiVersion": config.APIVersion, "kind": config.Kind,
		"seedConfig": map[string]any{"metadata": map[string]any{"name": managedSeed.Name}},
	})
	if err != nil {
		return nil, err
	}
	return deployment.Merge(withConnection(result, managedSeed), own), nil
}

// seedOf is what a shoot tells about the Seed that it becomes.
func seedOf(shoot *gardencorev1beta1.Shoot) map[string]any {
	networking := ptr.Deref(shoot.Spec.Networking, gardencorev1beta1.Networking{})
	provider := map[string]any{"type": shoot.Spec.Provider.Type, "region": shoot.Spec.Region}
	if zones := zonesOf(shoot); len(zones) > 0 {
		provider["zones"] = zones
	}
	spec := map[string]any{
		"provider": provider,
		"networks": withoutNil(map[string]any{"nodes": networking.Nodes, "pods": networking.Pods, "services": networking.Services}),
	}
	if shoot.Spec.DNS != nil && shoot.Spec.DNS.Domain != nil {
		spec["ingress"] = map[string]any{"domain": "ingress." + *shoot.Spec.DNS.Domain, "controller": map[string]any{"kind": ingressControllerKind}}
	}
	return map[string]any{"spec": spec}
}

func zonesOf(shoot *gardencorev1beta1.Shoot) []string {
	var zones []string
	for _, worker := range shoot.Spec.Provider.Workers {
		zones = append(zones, worker.Zones...)
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

func withoutNil(fields map[string]any) map[string]any {
	for name, value := range fields {
		if text, ok := value.(*string); ok && text == nil {
			delete(fields, name)
		}
	}
	return fields
}

// inheritance is what a managed seed takes over from the gardenlet that installs it: settings of controllers and capacity, and of
// the Seed the domains and where backups go.
func inheritance(parent *config.Configuration) (map[string]any, error) {
	all, err := deployment.Fields(parent)
	if err != nil {
		return nil, err
	}
	for _, name := range notInherited {
		delete(all, name)
	}
	spec := map[string]any{"dns": parent.SeedConfig.Spec.DNS}
	if parent.SeedConfig.Spec.Backup != nil {
		spec["backup"] = parent.SeedConfig.Spec.Backup
	}
	if defaults := parent.SeedConfig.Spec.Networks.ShootDefaults; defaults != nil {
		spec["networks"] = map[string]any{"shootDefaults": defaults}
	}
	seed, err := deployment.Fields(map[string]any{"seedConfig": map[string]any{"spec": spec}})
	if err != nil {
		return nil, err
	}
	return deployment.Merge(all, seed), nil
}

// withConnection adds where gardenlet keeps its kubeconfig and finds its first one, unless the configuration says so or gives it
// a kubeconfig.
func withConnection(result map[string]any, managedSeed *seedmanagementv1alpha1.ManagedSeed) map[string]any {
	if ptr.Deref(managedSeed.Spec.Gardenlet.Bootstrap, seedmanagementv1alpha1.BootstrapToken) == seedmanagementv1alpha1.BootstrapNone {
		return result
	}
	secret := func(name string) map[string]any {
		return map[string]any{"namespace": deployment.Namespace, "name": name}
	}
	return deployment.Merge(map[string]any{"gardenClientConnection": map[string]any{
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
