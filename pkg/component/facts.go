package component

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/etcd/request"
)

// Facts are what is known of a cluster when the Values of its components are decided. A component's package has a
// function Decide, which is pure, that makes them.
type Facts struct {
	// Namespace of the control plane in the seed.
	Namespace string
	// KubernetesVersion, without "v".
	KubernetesVersion string
	// Kubernetes and SystemComponents are the user's settings.
	Kubernetes       gardencorev1beta1.Kubernetes
	SystemComponents *gardencorev1beta1.SystemComponents
	// PriorityClass of the component's pods, which the list of components says.
	PriorityClass string
	// Availability of the control plane.
	Availability Availability
	// IsWorkerless: the cluster has no nodes.
	IsWorkerless bool
	// Images by their names in the image vector.
	Images map[string]string

	// PodNetworks and ServiceNetworks as CIDRs.
	PodNetworks, ServiceNetworks []string
	// DNS is the address of the cluster's DNS, ClusterDomain the domain of its Services.
	DNS, ClusterDomain string
	// Hostnames are all names of the API server, Hostname the one that nodes use, AdvertiseAddress its address within
	// the cluster; empty without nodes.
	Hostnames                  []string
	Hostname, AdvertiseAddress string
	// EncryptedResources are encrypted in etcd whatever the user says, in the form "secrets" or "things.example.com".
	EncryptedResources []string
	// TunnelEndpoint and ProxyEndpoint are host:port of the seed's gateway, for the VPN and for the PROXY protocol.
	TunnelEndpoint, ProxyEndpoint string

	// MinimumVolumeSize is the least that a volume of the seed has.
	MinimumVolumeSize resource.Quantity
	// TrafficDistribution of Services in the seed; empty for its default.
	TrafficDistribution string
	// BackupPrefix begins the names of the objects that backups are kept in; empty without an object store.
	BackupPrefix string
	// BackupClaim is the number by which etcd takes over backups of another seed, higher than those before; 0 if it
	// never was on another one.
	BackupClaim int64
	// ETCDBackup says how etcd is backed up to that store.
	ETCDBackup ETCDBackup
	// RestoreETCD is the point in time that etcd-main was last asked to restore; empty if it never was.
	RestoreETCD request.Restore

	// NodeAgentSecrets are the Secrets in kube-system that machines read their operating system configuration from.
	NodeAgentSecrets []string
	// Most is what the worker pools may grow to.
	Most PoolSizes
}

// ETCDBackup says how often an etcd is saved to its object store, and for how long that is kept.
type ETCDBackup struct {
	// DeltaSnapshotPeriod is how often changes are saved, and so how much of them the loss of the volume costs.
	DeltaSnapshotPeriod time.Duration
	// FullSnapshots is how many of these are kept, one an hour, and FullSnapshotAge the age above which only the newest
	// is; 0 sets no limit.
	FullSnapshots   int
	FullSnapshotAge time.Duration
	// VerificationPeriod is how often the newest backups are restored on trial; 0 turns it off.
	VerificationPeriod time.Duration
}

// DefaultETCDBackup is how etcds are backed up where nobody says otherwise, as gardenlet's configuration does for those
// of shoots.
func DefaultETCDBackup() ETCDBackup {
	return ETCDBackup{DeltaSnapshotPeriod: time.Minute, FullSnapshots: 12, VerificationPeriod: 24 * time.Hour}
}

// PoolSizes are sums over worker pools.
type PoolSizes struct {
	// Nodes and their Cores, and those of the nodes on which system components may run.
	Nodes, Cores, SystemNodes int64
}
