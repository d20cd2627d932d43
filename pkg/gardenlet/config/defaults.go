package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// setDefaults fills in what is documented as a default.
func (c *Configuration) setDefaults() {
	set(&c.Controllers.Seed.SyncPeriod, time.Hour)
	set(&c.Controllers.Seed.ConditionsPeriod, 30*time.Second)
	if c.Controllers.Seed.LeaseResyncSeconds == nil {
		two := int32(2)
		c.Controllers.Seed.LeaseResyncSeconds = &two
	}
	set(&c.Controllers.Shoot.SyncPeriod, time.Hour)
	set(&c.Controllers.Shoot.RetryDuration, 12*time.Hour)
	set(&c.Controllers.ShootCare.SyncPeriod, 30*time.Second)
	set(&c.Controllers.ShootState.SyncPeriod, 30*time.Second)
	set(&c.Controllers.ManagedSeed.SyncPeriod, time.Hour)
	set(&c.Controllers.ManagedSeed.SyncJitterPeriod, 5*time.Minute)
	set(&c.Controllers.ManagedSeed.WaitSyncPeriod, 5*time.Second)
	set(&c.Controllers.TokenRequestorWorkloadIdentity.SyncPeriod, time.Minute)
	number(&c.Controllers.ManagedSeed.ConcurrentSyncs, 5)
	set(&c.Controllers.Gardenlet.SyncPeriod, time.Hour)
	set(&c.ResourceManager.SyncPeriod, time.Minute)
	set(&c.ETCDConfig.DeltaSnapshotPeriod, time.Minute)
	set(&c.ETCDConfig.VerificationPeriod, 24*time.Hour)
	number(&c.ETCDConfig.MaxBackupsLimitBasedGC, 12)
	number(&c.Controllers.Shoot.ConcurrentSyncs, 20)
	number(&c.Controllers.ShootCare.ConcurrentSyncs, 5)
	number(&c.Controllers.ShootState.ConcurrentSyncs, 5)
	number(&c.Controllers.ControllerInstallation.ConcurrentSyncs, 5)
	number(&c.Controllers.Bastion.ConcurrentSyncs, 20)
	number(&c.Controllers.BackupBucket.ConcurrentSyncs, 20)
	number(&c.Controllers.BackupEntry.ConcurrentSyncs, 20)
	number(&c.Resources.Capacity.Shoots, 250)
	number(&c.Gateway.TLSPort, 443)
	number(&c.Gateway.ProxyPort, 8443)
	number(&c.Gateway.WireGuardPort, 51820)
	if c.Controllers.ShootCare.ConditionThresholds == nil {
		c.Controllers.ShootCare.ConditionThresholds = defaultThresholds()
	}
	if c.GardenClientConnection.KubeconfigSecret == nil {
		c.GardenClientConnection.KubeconfigSecret = &SecretReference{Namespace: "garden", Name: "gardenlet-kubeconfig"}
	}
}

// defaultThresholds gives every condition of a shoot time to recover.
func defaultThresholds() *[]ConditionThreshold {
	minute := metav1.Duration{Duration: time.Minute}
	return &[]ConditionThreshold{
		{Type: string(gardencorev1beta1.ShootAPIServerAvailable), Duration: minute},
		{Type: string(gardencorev1beta1.ShootControlPlaneHealthy), Duration: minute},
		{Type: string(gardencorev1beta1.ShootSystemComponentsHealthy), Duration: minute},
		{Type: string(gardencorev1beta1.ShootEveryNodeReady), Duration: metav1.Duration{Duration: 5 * time.Minute}},
		{Type: string(gardencorev1beta1.ShootEtcdBackupReady), Duration: metav1.Duration{Duration: 5 * time.Minute}},
	}
}

func set(field **metav1.Duration, value time.Duration) {
	if *field == nil {
		*field = &metav1.Duration{Duration: value}
	}
}

func number[T int | int64](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}
