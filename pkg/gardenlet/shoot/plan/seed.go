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
	// Backup says where etcd is backed up; nil if it is not.
	Backup *Backup
}

// Backup is where a shoot's etcd is backed up.
type Backup struct {
	// Provider is the type of the extensions that care for bucket and entry.
	Provider string
	// Bucket is the BackupBucket of the seed, Entry the BackupEntry of the shoot.
	Bucket, Entry string
}

// planBackup reads where the seed's etcds are backed up.
func planBackup(seed *gardencorev1beta1.Seed, shoot Identity) *Backup {
	if seed.Spec.Backup == nil {
		return nil
	}
	return &Backup{
		Provider: seed.Spec.Backup.Provider, Bucket: string(seed.UID), Entry: shoot.BackupEntry(),
	}
}

// planStore decides where etcd is backed up, and so whether it can restore what it is asked to.
func (p *Plan) planStore(in *Inputs) {
	if p.Seed.Backup = planBackup(in.Seed, p.Identity); p.Seed.Backup != nil {
		p.Restore = in.Restore
	}
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
