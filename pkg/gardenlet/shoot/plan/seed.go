package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Seed is what the seed asks of every control plane.
type Seed struct {
	// MinimumVolumeSize is the least size of a volume.
	MinimumVolumeSize resource.Quantity
	// TrafficDistribution of Services; empty where the zones of clients do not matter.
	TrafficDistribution string
}

// planSeed reads what the seed asks for.
func planSeed(spec *gardencorev1beta1.SeedSpec) Seed {
	plan := Seed{}
	if volume := spec.Volume; volume != nil && volume.MinimumSize != nil {
		plan.MinimumVolumeSize = *volume.MinimumSize
	}
	if settings := spec.Settings; settings != nil && settings.TopologyAwareRouting != nil &&
		settings.TopologyAwareRouting.Enabled {
		plan.TrafficDistribution = corev1.ServiceTrafficDistributionPreferClose
	}
	return plan
}
