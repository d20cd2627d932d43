package v1alpha1

// Kinds, as ControllerRegistrations name them.
const (
	BackupBucketResource          = "BackupBucket"
	BackupEntryResource           = "BackupEntry"
	BastionResource               = "Bastion"
	ClusterResource               = "Cluster"
	ContainerRuntimeResource      = "ContainerRuntime"
	ControlPlaneResource          = "ControlPlane"
	DNSRecordResource             = "DNSRecord"
	ExtensionResource             = "Extension"
	InfrastructureResource        = "Infrastructure"
	NetworkResource               = "Network"
	OperatingSystemConfigResource = "OperatingSystemConfig"
	WorkerResource                = "Worker"
)

const (
	// FinalizerPrefix begins the finalizers of extensions.
	FinalizerPrefix = "extensions.gardener.cloud/"
	// LabelBackupBucket is the label, on a Secret that an extension made for access to a bucket, with the name of the
	// BackupBucket.
	LabelBackupBucket = "extensions.trellis.garden/backup-bucket"
	// BackupSecretName is the Secret, in the namespace of a shoot, with which its etcd gets to its backups. The
	// extension writes it for a BackupEntry, and BackupSecretBucketName is its key with the name of the bucket in the
	// store.
	BackupSecretName       = "etcd-backup"
	BackupSecretBucketName = "bucketName"
	// AnnotationBackupSecretCreatedBy names, on that Secret, the BackupEntry.
	AnnotationBackupSecretCreatedBy = "backup.gardener.cloud/created-by"
	// OperatingSystemConfigSecretDataKey is the key of user data in the Secret of an OperatingSystemConfig.
	OperatingSystemConfigSecretDataKey = "cloud_config"
	// NodeAgentSecretDataKey is the key of the OperatingSystemConfig in the Secret of the shoot that node-agent reads.
	NodeAgentSecretDataKey = "osc.yaml"
	// OperatingSystemConfigDefaultFilePermission is the mode of files that have none.
	OperatingSystemConfigDefaultFilePermission int32 = 0o644
	// BootstrapTokenPlaceholder stands in user data for the token with which a machine joins;
	// machine-controller-manager replaces it.
	BootstrapTokenPlaceholder = "<<BOOTSTRAP_TOKEN>>"
	// MachineNamePlaceholder stands in user data for the name of the machine; machine-controller-manager replaces it.
	MachineNamePlaceholder = "<<MACHINE_NAME>>"
	// HeartbeatLeaseName is the name of the Lease that a running extension renews in its namespace.
	HeartbeatLeaseName = "gardener-extension-heartbeat"
	// DefaultDNSRecordTTL is the time to live of DNS records that have none, in seconds.
	DefaultDNSRecordTTL int64 = 120
)

// Annotations of a MachineDeployment that override options of cluster-autoscaler for its group of nodes.
const (
	ScaleDownUtilizationThresholdAnnotation    = "autoscaler.gardener.cloud/scale-down-utilization-threshold"
	ScaleDownGpuUtilizationThresholdAnnotation = "autoscaler.gardener.cloud/scale-down-gpu-utilization-threshold"
	ScaleDownUnneededTimeAnnotation            = "autoscaler.gardener.cloud/scale-down-unneeded-time"
	ScaleDownUnreadyTimeAnnotation             = "autoscaler.gardener.cloud/scale-down-unready-time"
	MaxNodeProvisionTimeAnnotation             = "autoscaler.gardener.cloud/max-node-provision-time"
)

// Annotations of ClusterRoles in an extension's chart, by which gardenlet gives the extension rights where shoots are.
const (
	// AnnotationRoleResources lists what the role serves: <kind>/<type>, separated by commas. On the namespace of a
	// shoot it is gardenlet's note of what it has written there.
	AnnotationRoleResources = "extensions.trellis.garden/resources"
	// AnnotationRoleServiceAccount is the name of the account in the extension's namespace that gets the rights.
	AnnotationRoleServiceAccount = "extensions.trellis.garden/service-account"
	// AnnotationRoleNamespacePrefix says that the rights are for the namespace <prefix><namespace of the shoot>, which
	// gardenlet makes and removes. The prefix is of lower case letters and a hyphen.
	AnnotationRoleNamespacePrefix = "extensions.trellis.garden/namespace-prefix"
)

// AnnotationDefaultStorageClass is that of Kubernetes which, with the value "true", marks the class of volumes that ask
// for none. Shoots get theirs with their ControlPlane.
const AnnotationDefaultStorageClass = "storageclass.kubernetes.io/is-default-class"
