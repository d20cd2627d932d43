package gardenletconfig

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

const ingressControllerKind = "nginx"

// SeedSpecOfShoot is what a shoot tells about the Seed that it becomes.
func SeedSpecOfShoot(shoot *gardencorev1beta1.Shoot) map[string]any {
	networking := ptr.Deref(shoot.Spec.Networking, gardencorev1beta1.Networking{})
	provider := map[string]any{"type": shoot.Spec.Provider.Type, "region": shoot.Spec.Region}
	if zones := zonesOf(shoot); len(zones) > 0 {
		provider["zones"] = zones
	}
	spec := map[string]any{
		"provider": provider,
		"networks": withoutNil(map[string]any{
			"nodes": networking.Nodes, "pods": networking.Pods, "services": networking.Services,
		}),
	}
	if shoot.Spec.DNS != nil && shoot.Spec.DNS.Domain != nil {
		spec["ingress"] = map[string]any{
			"domain": "ingress." + *shoot.Spec.DNS.Domain, "controller": map[string]any{"kind": ingressControllerKind},
		}
	}
	return spec
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

// InheritedSeedSpec is what the Seed of a managed seed takes over from that of the seed that hosts it: the domains,
// where backups go, and the networks of shoots.
func InheritedSeedSpec(parent *gardencorev1beta1.SeedSpec) map[string]any {
	spec := map[string]any{"dns": parent.DNS}
	if parent.Backup != nil {
		spec["backup"] = parent.Backup
	}
	if defaults := parent.Networks.ShootDefaults; defaults != nil {
		spec["networks"] = map[string]any{"shootDefaults": defaults}
	}
	return spec
}

// SeedOfManagedSeed returns what the Seed of a managed seed is made from, by what its shoot and the Seed that hosts it
// are like.
func SeedOfManagedSeed(managedSeed *seedmanagementv1alpha1.ManagedSeed, shoot *gardencorev1beta1.Shoot,
	parent *gardencorev1beta1.Seed) (*seedmanagementv1alpha1.SeedTemplate, error) {
	config, err := ConfigOf(managedSeed.Spec.Gardenlet.Config)
	if err != nil {
		return nil, fmt.Errorf("spec.gardenlet.config: %w", err)
	}
	said, _ := config["seedConfig"].(map[string]any)
	merged, err := Fields(map[string]any{"spec": SeedSpecOfShoot(shoot)})
	if err != nil {
		return nil, err
	}
	merged = Merge(merged, said)
	if ptr.Deref(managedSeed.Spec.Gardenlet.MergeWithParent, true) {
		inherited, err := Fields(map[string]any{"spec": InheritedSeedSpec(&parent.Spec)})
		if err != nil {
			return nil, err
		}
		merged = Merge(inherited, merged)
	}
	raw, err := json.Marshal(merged)
	if err != nil {
		return nil, err
	}
	template := &seedmanagementv1alpha1.SeedTemplate{}
	return template, json.Unmarshal(raw, template)
}
