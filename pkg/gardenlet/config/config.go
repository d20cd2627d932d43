// Package config is the configuration file of gardenlet. Its form follows the published GardenletConfiguration, reduced
// to what gardenlet uses; unknown fields are refused, so that a typing error does not go unnoticed.
package config

import (
	"fmt"
	"net/netip"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/strictyaml"
)

// Configuration of one gardenlet.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`
	// GardenClientConnection says how the garden is reached.
	GardenClientConnection GardenClientConnection `json:"gardenClientConnection"`
	// Controllers sets concurrency and periods.
	Controllers Controllers `json:"controllers,omitempty"`
	// Resources is how many shoots the seed can take.
	Resources Resources `json:"resources,omitempty"`
	// SeedConfig is the Seed that gardenlet creates and is responsible for. Required.
	SeedConfig *SeedConfig `json:"seedConfig"`
	// Gateway is where the API servers of the seed's shoots are reached. Required.
	Gateway Gateway `json:"gateway"`
	// ExposureClassHandlers are further ways to the gateway.
	ExposureClassHandlers []ExposureClassHandler `json:"exposureClassHandlers,omitempty"`
	// Resource manager settings of the seed.
	ResourceManager ResourceManager `json:"resourceManager,omitempty"`
	// Egress says where the kube-apiservers of the seed may connect to.
	Egress Egress `json:"egress,omitempty"`
	// ETCDConfig says how the etcds of shoots are backed up.
	ETCDConfig ETCDConfig `json:"etcdConfig,omitempty"`
}

// GardenClientConnection says how the garden is reached: with the kubeconfig in KubeconfigSecret, which gardenlet gets
// for itself with the one in BootstrapKubeconfig. Kubeconfig, a path, replaces both (for development).
type GardenClientConnection struct {
	// BootstrapKubeconfig names a Secret of the seed whose key `kubeconfig` holds a kubeconfig with a bootstrap token.
	BootstrapKubeconfig *SecretReference `json:"bootstrapKubeconfig,omitempty"`
	// KubeconfigSecret names the Secret of the seed in which gardenlet keeps its own kubeconfig.
	KubeconfigSecret *SecretReference `json:"kubeconfigSecret,omitempty"`
	// Kubeconfig is the path of a kubeconfig of the garden.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// GardenClusterAddress replaces the server of the bootstrap kubeconfig in the kubeconfigs that extensions and the
	// gardenlets of managed seeds get.
	GardenClusterAddress string `json:"gardenClusterAddress,omitempty"`
}

// SecretReference names a Secret of the seed.
type SecretReference struct {
	// Name of the Secret.
	Name string `json:"name"`
	// Namespace of the Secret.
	Namespace string `json:"namespace"`
}

// Controllers of gardenlet.
type Controllers struct {
	Seed                   SeedController                   `json:"seed,omitempty"`
	Shoot                  ShootController                  `json:"shoot,omitempty"`
	ShootCare              ShootCareController              `json:"shootCare,omitempty"`
	ShootState             ShootStateController             `json:"shootState,omitempty"`
	ControllerInstallation ControllerInstallationController `json:"controllerInstallation,omitempty"`
	Bastion                BastionController                `json:"bastion,omitempty"`
	ManagedSeed            ManagedSeedController            `json:"managedSeed,omitempty"`
	BackupBucket           BackupBucketController           `json:"backupBucket,omitempty"`
	BackupEntry            BackupEntryController            `json:"backupEntry,omitempty"`
	Gardenlet              GardenletController              `json:"gardenlet,omitempty"`

	TokenRequestorWorkloadIdentity TokenRequestorWorkloadIdentityController `json:"tokenRequestorWorkloadIdentity,omitempty"`
}

// SeedController reconciles the Seed.
type SeedController struct {
	// SyncPeriod between reconciliations; default 1h.
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// LeaseResyncSeconds between renewals of the seed's Lease; default 2.
	LeaseResyncSeconds *int32 `json:"leaseResyncSeconds,omitempty"`
	// ConditionsPeriod between checks of the seed's health; default 30s.
	ConditionsPeriod *metav1.Duration `json:"conditionsPeriod,omitempty"`
}

// ShootController reconciles Shoots.
type ShootController struct {
	// ConcurrentSyncs is how many shoots are worked on at a time; default 20.
	ConcurrentSyncs int `json:"concurrentSyncs,omitempty"`
	// SyncPeriod between reconciliations of a shoot that does not change; default 1h. It is up to a tenth longer.
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// RespectSyncPeriodOverwrite lets the annotation shoot.gardener.cloud/sync-period make it longer for a shoot. Those
	// of namespace garden, which are the operators', always may.
	RespectSyncPeriodOverwrite bool `json:"respectSyncPeriodOverwrite,omitempty"`
	// RetryDuration after which a failing operation is given up; default 12h.
	RetryDuration *metav1.Duration `json:"retryDuration,omitempty"`
}

// ShootCareController checks the health of shoots.
type ShootCareController struct {
	// ConcurrentSyncs is how many shoots are looked at at a time; default 5.
	ConcurrentSyncs int `json:"concurrentSyncs,omitempty"`
	// SyncPeriod between looks at a shoot; default 30s.
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// ConditionThresholds say for how long a condition may be Progressing before it is False; default 1m, for
	// EveryNodeReady and EtcdBackupReady 5m. An empty list means not at all.
	ConditionThresholds *[]ConditionThreshold `json:"conditionThresholds,omitempty"`
}

// ConditionThreshold belongs to one condition type.
type ConditionThreshold struct {
	Type     string          `json:"type"`
	Duration metav1.Duration `json:"duration"`
}

// ShootStateController keeps in the garden what another seed would need of shoots.
type ShootStateController struct {
	// ConcurrentSyncs is how many shoots are looked at at a time; default 5.
	ConcurrentSyncs int `json:"concurrentSyncs,omitempty"`
	// SyncPeriod between looks at a shoot; default 30s.
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// ControllerInstallationController installs extensions.
type ControllerInstallationController struct {
	// ConcurrentSyncs is how many extensions are installed at a time; default 5.
	ConcurrentSyncs int `json:"concurrentSyncs,omitempty"`
}

// BastionController makes bastions.
type BastionController struct {
	// ConcurrentSyncs is how many bastions are worked on at a time; default 20.
	ConcurrentSyncs int `json:"concurrentSyncs,omitempty"`
}

// ManagedSeedController installs gardenlets into shoots that are to be seeds.
type ManagedSeedController struct {
	// ConcurrentSyncs is how many managed seeds are worked on at a time; default 5.
	ConcurrentSyncs int `json:"concurrentSyncs,omitempty"`
	// SyncPeriod between installations of a gardenlet that does not change; default 1h.
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// SyncJitterPeriod is the time after the start of gardenlet over which it spreads the installations of those that
	// are seeds already; default 5m.
	SyncJitterPeriod *metav1.Duration `json:"syncJitterPeriod,omitempty"`
	// WaitSyncPeriod between looks at whether a shoot is to be a seed, and at what is waited for; default 5s.
	WaitSyncPeriod *metav1.Duration `json:"waitSyncPeriod,omitempty"`
}

// BackupBucketController makes buckets.
type BackupBucketController struct {
	// ConcurrentSyncs is how many buckets are worked on at a time; default 20.
	ConcurrentSyncs int `json:"concurrentSyncs,omitempty"`
}

// BackupEntryController makes the directories of shoots in buckets.
type BackupEntryController struct {
	// ConcurrentSyncs is how many entries are worked on at a time; default 20.
	ConcurrentSyncs int `json:"concurrentSyncs,omitempty"`
	// DeletionGracePeriodHours is for how long a deleted entry keeps its backups; default 0.
	DeletionGracePeriodHours int `json:"deletionGracePeriodHours,omitempty"`
	// DeletionGracePeriodShootPurposes are the purposes of shoots (the entry's annotation shoot.gardener.cloud/purpose)
	// to whose entries the period applies; empty: to all.
	DeletionGracePeriodShootPurposes []gardencorev1beta1.ShootPurpose `json:"deletionGracePeriodShootPurposes,omitempty"`
}

// GardenletController deploys gardenlet itself, as the Gardenlet of its seed's name says.
type GardenletController struct {
	// SyncPeriod between installations of what does not change; default 1h.
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// TokenRequestorWorkloadIdentityController renews tokens of workload identities.
type TokenRequestorWorkloadIdentityController struct {
	// SyncPeriod between looks at which tokens are due; default 1m.
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// Resources of the seed.
type Resources struct {
	// Capacity of the seed; resource `shoots`, default 250.
	Capacity ResourceCounts `json:"capacity,omitempty"`
	// Reserved part of the capacity, not to be allocated.
	Reserved ResourceCounts `json:"reserved,omitempty"`
}

// ResourceCounts counts what a seed hosts.
type ResourceCounts struct {
	Shoots int64 `json:"shoots,omitempty"`
}

// SeedConfig is the template of the Seed.
type SeedConfig struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              gardencorev1beta1.SeedSpec `json:"spec"`
}

// Gateway is the one address of the seed.
type Gateway struct {
	// Address is the IP address or host name that DNS records of shoots point to.
	Address string `json:"address"`
	// TLSPort (default 443) takes TLS by SNI, ProxyPort (8443) TLS behind a PROXY header, WireGuardPort (51820)
	// tunnels.
	TLSPort       int `json:"tlsPort,omitempty"`
	ProxyPort     int `json:"proxyPort,omitempty"`
	WireGuardPort int `json:"wireGuardPort,omitempty"`
}

// Egress of the seed.
type Egress struct {
	// AllowedNetworks may be reached although they are private or the seed's, e.g. "10.9.0.0/16" or "10.9.0.7/32:443".
	AllowedNetworks []string `json:"allowedNetworks,omitempty"`
	// InsecureKubeconfigs lets the kubeconfigs of shoots' webhooks name a proxy, which has to be an allowed address as
	// well, and turn off the verification of certificates. That of ImagePolicyWebhook names no proxy in any case.
	// garden-apiserver has a setting of its own.
	InsecureKubeconfigs bool `json:"allowInsecureWebhookKubeconfigs,omitempty"`
}

// ETCDConfig says how etcds are backed up to the seed's object store. Without spec.backup of the Seed it is without
// effect. Where etcd-druid has such a field, it has the name.
type ETCDConfig struct {
	// DeltaSnapshotPeriod is how often changes are saved, and so how much of them the loss of a volume costs: 10s to
	// 5m, default 1m.
	DeltaSnapshotPeriod *metav1.Duration `json:"deltaSnapshotPeriod,omitempty"`
	// MaxBackupsLimitBasedGC is how many full snapshots are kept, one an hour: 1 to 1000, default 12.
	MaxBackupsLimitBasedGC int64 `json:"maxBackupsLimitBasedGC,omitempty"`
	// FullSnapshotRetentionPeriod is the age above which no full snapshot is kept but the newest: 1h or more; default
	// 0, which sets no limit.
	FullSnapshotRetentionPeriod metav1.Duration `json:"fullSnapshotRetentionPeriod,omitzero"`
	// VerificationPeriod is how often the newest backups are restored on trial: 10m or more, default 24h; 0 turns it
	// off.
	VerificationPeriod *metav1.Duration `json:"verificationPeriod,omitempty"`
}

// Allowances are AllowedNetworks, read.
func (e Egress) Allowances() ([]egress.Allowance, error) {
	list := make([]egress.Allowance, 0, len(e.AllowedNetworks))
	for i, network := range e.AllowedNetworks {
		allowance, err := egress.ParseAllowance(network)
		if err != nil {
			return nil, fmt.Errorf("egress.allowedNetworks[%d]: %w", i, err)
		}
		list = append(list, allowance)
	}
	return list, nil
}

// ResourceManager settings.
type ResourceManager struct {
	// SyncPeriod between applications of unchanged objects; default 1m.
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// Load reads the file at path, sets defaults and validates it.
func Load(path string) (*Configuration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	c, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	return c, nil
}

// Parse reads a configuration, sets defaults and validates it.
func Parse(data []byte) (*Configuration, error) {
	c := &Configuration{}
	if err := strictyaml.Unmarshal(data, c, nil); err != nil {
		return nil, err
	}
	c.setDefaults()
	return c, c.validate()
}

// RecordType is the type of DNS records for the gateway: A, AAAA or CNAME.
func (g Gateway) RecordType() string {
	address, err := netip.ParseAddr(g.Address)
	switch {
	case err != nil:
		return "CNAME"
	case address.Is4():
		return "A"
	default:
		return "AAAA"
	}
}
