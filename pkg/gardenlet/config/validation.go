package config

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// validate names the first field that is wrong.
func (c *Configuration) validate() error {
	switch {
	case c.APIVersion != seedmanagementv1alpha1.GardenletConfigurationAPIVersion ||
		c.Kind != seedmanagementv1alpha1.GardenletConfigurationKind:
		return fmt.Errorf("apiVersion and kind must be %s %s, not %q %q",
			seedmanagementv1alpha1.GardenletConfigurationAPIVersion, seedmanagementv1alpha1.GardenletConfigurationKind,
			c.APIVersion, c.Kind)
	case c.SeedConfig == nil || c.SeedConfig.Name == "":
		return fmt.Errorf("seedConfig.metadata.name must name the seed")
	case c.Gateway.Address == "":
		return fmt.Errorf("gateway.address must be the address at which the seed's gateway is reached")
	case c.GardenClientConnection.Kubeconfig == "" && c.GardenClientConnection.BootstrapKubeconfig == nil:
		return fmt.Errorf("gardenClientConnection needs bootstrapKubeconfig (a Secret) or kubeconfig (a path)")
	case c.Controllers.BackupEntry.DeletionGracePeriodHours < 0:
		return fmt.Errorf("controllers.backupEntry.deletionGracePeriodHours (%d) must not be negative",
			c.Controllers.BackupEntry.DeletionGracePeriodHours)
	case c.Resources.Reserved.Shoots > c.Resources.Capacity.Shoots:
		return fmt.Errorf("resources.reserved.shoots (%d) is more than resources.capacity.shoots (%d)",
			c.Resources.Reserved.Shoots, c.Resources.Capacity.Shoots)
	}
	if err := errors.Join(c.validateHandlers(), c.ETCDConfig.validate()); err != nil {
		return err
	}
	_, err := c.Egress.Allowances()
	return err
}

// validateHandlers names the first handler that is wrong.
func (c *Configuration) validateHandlers() error {
	known := map[string]bool{}
	for i, handler := range c.ExposureClassHandlers {
		path := fmt.Sprintf("exposureClassHandlers[%d]", i)
		switch problems := validation.IsDNS1123Label(handler.Name); {
		case len(problems) > 0:
			return fmt.Errorf("%s.name (%q): %s", path, handler.Name, problems[0])
		case known[handler.Name]:
			return fmt.Errorf("%s.name (%q) is there twice", path, handler.Name)
		case handler.Address != "" && len(handler.LoadBalancerService.Annotations) > 0:
			return fmt.Errorf("%s.loadBalancerService.annotations are for a Service, which is not made beside an "+
				"address", path)
		}
		known[handler.Name] = true
	}
	return nil
}

// Bounds of backups. Changes have to reach the store well within the ten minutes after which EtcdBackupReady is False.
const (
	leastDeltaPeriod, mostDeltaPeriod = 10 * time.Second, 5 * time.Minute
	mostFullSnapshots                 = 1000
	leastRetentionPeriod              = time.Hour
	leastVerificationPeriod           = 10 * time.Minute
)

// validate names the first setting of backups that is out of bounds.
func (e ETCDConfig) validate() error {
	delta, verification := e.DeltaSnapshotPeriod.Duration, e.VerificationPeriod.Duration
	retention, count := e.FullSnapshotRetentionPeriod.Duration, e.MaxBackupsLimitBasedGC
	switch {
	case delta < leastDeltaPeriod || delta > mostDeltaPeriod:
		return fmt.Errorf("etcdConfig.deltaSnapshotPeriod (%s) must be from %s to %s", delta, leastDeltaPeriod,
			mostDeltaPeriod)
	case count < 1 || count > mostFullSnapshots:
		return fmt.Errorf("etcdConfig.maxBackupsLimitBasedGC (%d) must be from 1 to %d", count, mostFullSnapshots)
	case retention != 0 && retention < leastRetentionPeriod:
		return fmt.Errorf("etcdConfig.fullSnapshotRetentionPeriod (%s) must be 0, which sets no limit, or at least %s",
			retention, leastRetentionPeriod)
	case verification != 0 && verification < leastVerificationPeriod:
		return fmt.Errorf("etcdConfig.verificationPeriod (%s) must be 0, which turns it off, or at least %s",
			verification, leastVerificationPeriod)
	}
	return nil
}
