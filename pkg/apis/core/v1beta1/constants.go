package v1beta1

// Kinds of extension objects, as ControllerRegistrations name them, and of cloud profiles.
const (
	CloudProfileReferenceKindCloudProfile           = "CloudProfile"
	CloudProfileReferenceKindNamespacedCloudProfile = "NamespacedCloudProfile"
)

// Namespaces and names with a meaning.
const (
	// GardenNamespace is the namespace of the garden's own objects, and of the operators' project.
	GardenNamespace = "garden"
	// ProjectNamePrefix begins the names of projects' namespaces.
	ProjectNamePrefix = "garden-"
	// SeedNamespaceNamePrefix begins the names of the namespaces, one per seed, for what is exchanged with a gardenlet.
	SeedNamespaceNamePrefix = "seed-"
	// TechnicalIDPrefix begins the names of control planes' namespaces in seeds: shoot--<project>--<name>.
	TechnicalIDPrefix = "shoot--"
	// DefaultSchedulerName is the name of the scheduler that assigns seeds unless a Shoot names another.
	DefaultSchedulerName = "default-scheduler"
	// DNSUnmanaged is the type of DNS provider for domains that others care for.
	DNSUnmanaged = "unmanaged"
	// IngressKindNginx is the kind of ingress controller that seeds have.
	IngressKindNginx = "nginx"
	// ClusterIdentity is the name, and the key, of the ConfigMap in kube-system that holds a cluster's identity.
	ClusterIdentity = "cluster-identity"
)

// Annotations that people and controllers set to have something done.
const (
	// GardenerOperation asks for an operation, such as reconcile.
	GardenerOperation = "gardener.cloud/operation"
	// GardenerMaintenanceOperation asks for an operation at the next maintenance.
	GardenerMaintenanceOperation = "maintenance.gardener.cloud/operation"
	// GardenerTimestamp is when gardenlet last asked an extension for something, as RFC 3339 with nanoseconds.
	GardenerTimestamp = "gardener.cloud/timestamp"
	// GardenerCreatedBy is the user that created the object.
	GardenerCreatedBy = "gardener.cloud/created-by"
	// ConfirmationDeletion has to be "true" for an object to be deleted.
	ConfirmationDeletion = "confirmation.gardener.cloud/deletion"
	// DeletionConfirmedBy is the user that confirmed the deletion.
	DeletionConfirmedBy = "deletion.gardener.cloud/confirmed-by"
	// AnnotationConfirmationForceDeletion is "true" when the deletion is to go on without the infrastructure.
	AnnotationConfirmationForceDeletion = "confirmation.gardener.cloud/force-deletion"
	// AnnotationConfirmationRestoreETCD repeats, when a restore of etcd is asked for, the time whose state is restored:
	// what was written after it is lost.
	AnnotationConfirmationRestoreETCD = "confirmation.gardener.cloud/restore-etcd"
	// AnnotationConfirmationSeedLost on a Seed says that its cluster is gone for good, and how that is known. Then its
	// control planes may be bound to other seeds without its gardenlet; should it come back, it takes down its own.
	AnnotationConfirmationSeedLost = "confirmation.gardener.cloud/seed-lost"
	// ShootIgnore is "true" when a Shoot is to be left alone.
	ShootIgnore = "shoot.gardener.cloud/ignore"
	// ShootTasks lists tasks for the next reconciliation, separated by commas.
	ShootTasks = "shoot.gardener.cloud/tasks"
	// ShootSyncPeriod is how often a Shoot is reconciled without a change.
	ShootSyncPeriod = "shoot.gardener.cloud/sync-period"
	// ShootSkipReadiness is "true" when the flow is not to wait for nodes.
	ShootSkipReadiness = "shoot.gardener.cloud/skip-readiness"
	// ShootSkipCleanup is "true" when a deletion is not to clean up inside the cluster first.
	ShootSkipCleanup = "shoot.gardener.cloud/skip-cleanup"
	// ShootNoCleanup is the label, "true", of objects in a shoot that stay when it is cleaned up for its deletion.
	ShootNoCleanup = "shoot.gardener.cloud/no-cleanup"
	// ShootCleanupWebhooksFinalizeGracePeriod, and the others, are for how many seconds what is deleted in a shoot,
	// because the shoot is, may take to go before its finalizers are removed.
	ShootCleanupWebhooksFinalizeGracePeriod            = "shoot.gardener.cloud/cleanup-webhooks-finalize-grace-period-seconds"
	ShootCleanupExtendedAPIsFinalizeGracePeriod        = "shoot.gardener.cloud/cleanup-extended-apis-finalize-grace-period-seconds"
	ShootCleanupKubernetesResourcesFinalizeGracePeriod = "shoot.gardener.cloud/cleanup-kubernetes-resources-finalize-grace-period-seconds"
	ShootCleanupNamespacesFinalizeGracePeriod          = "shoot.gardener.cloud/cleanup-namespaces-finalize-grace-period-seconds"
	// ShootExpirationTimestamp is when a Shoot is deleted because of a Quota.
	ShootExpirationTimestamp = "shoot.gardener.cloud/expiration-timestamp"
	// ShootNeedsRetryOperation is "true" when a failed Shoot is to be tried again at the next maintenance.
	ShootNeedsRetryOperation = "maintenance.shoot.gardener.cloud/needs-retry-operation"
	// SeedEmergencyStop is "true" on a Seed whose shoots are to be left alone, as with ShootIgnore; operations that run
	// are cut off.
	SeedEmergencyStop = "shoot.gardener.cloud/emergency-stop-reconciliations"
	// GeneratedBackupBucketSecretPrefix begins the names of the Secrets, in namespace garden, with the access to a
	// bucket that an extension made; the name of the BackupBucket follows.
	GeneratedBackupBucketSecretPrefix = "generated-bucket-"
	// BackupEntryForceDeletion is "true" when a BackupEntry is to be deleted without its grace period.
	BackupEntryForceDeletion = "backupentry.core.gardener.cloud/force-deletion"
	// AnnotationShootPurpose is, on a BackupEntry, the purpose of its shoot.
	AnnotationShootPurpose = "shoot.gardener.cloud/purpose"
	// AnnotationGenericTokenKubeconfigSecretName names, on a Cluster, the Secret with the kubeconfig that reads its
	// token from a file.
	AnnotationGenericTokenKubeconfigSecretName = "generic-token-kubeconfig.secret.gardener.cloud/name"
	// AnnotationInstalledChecksum says, on what gardenlet has installed from a chart, what it was installed of.
	AnnotationInstalledChecksum = "trellis.garden/installed-checksum"
	// AnnotationEgressClientSecretName names, on a Cluster, the Secret by which what extensions run for the control
	// plane leaves the seed: tls.crt and tls.key for the egress proxy, and its authority, ca.crt.
	AnnotationEgressClientSecretName = "egress-client.secret.trellis.garden/name"
	// AnnotationSingleNodeSeed is "true" on the Cluster of a highly available control plane whose seed has one node at
	// most that takes pods of control planes: replicas share it.
	AnnotationSingleNodeSeed = "seed.trellis.garden/single-node"
	// AnnotationNodeSSHHostKeys is, on a Node of a shoot, what its machine proves itself with by SSH: public keys as in
	// known_hosts but without a host, one a line.
	AnnotationNodeSSHHostKeys = "node.trellis.garden/ssh-host-keys"
	// AnnotationProjectsAreFiltered is "true" on ClusterRole ClusterRoleReadGlobalResources when the last
	// garden-apiserver has ended that showed all projects to whoever may list them.
	AnnotationProjectsAreFiltered = "garden.trellis.garden/projects-are-filtered"
	// AnnotationShootUID is the UID of the Shoot on objects in its seed.
	AnnotationShootUID = "shoot.gardener.cloud/uid"
	// AnnotationPodSecurityEnforce, on a ControllerRegistration, is the level of PodSecurity that the extension's
	// namespace in seeds enforces: restricted, baseline or privileged, which is the default.
	AnnotationPodSecurityEnforce = "security.gardener.cloud/pod-security-enforce"
	// AnnotationMeltdownProtectionActive is on Deployments in seeds that the dependency watchdog keeps stopped. Who
	// deploys them leaves their replicas alone meanwhile.
	AnnotationMeltdownProtectionActive = "dependency-watchdog.gardener.cloud/meltdown-protection-active"
	// AnnotationWatchdogReplicas is how many replicas such a Deployment had before, and gets afterwards.
	AnnotationWatchdogReplicas = "dependency-watchdog.gardener.cloud/replicas"
	// AnnotationWatchdogIgnoreScaling is "true" on Deployments that the dependency watchdog is to leave alone.
	AnnotationWatchdogIgnoreScaling = "dependency-watchdog.gardener.cloud/ignore-scaling"
)

// Values of the annotations GardenerOperation and GardenerMaintenanceOperation.
const (
	GardenerOperationReconcile    = "reconcile"
	GardenerOperationRetry        = "retry"
	GardenerOperationMaintain     = "maintain"
	GardenerOperationMigrate      = "migrate"
	GardenerOperationRestore      = "restore"
	GardenerOperationWaitForState = "wait-for-state"
	GardenerOperationKeepalive    = "keepalive"

	// SeedOperationRenewGardenAccessSecrets renews the tokens with which extensions reach the garden.
	SeedOperationRenewGardenAccessSecrets = "renew-garden-access-secrets"
	// SeedOperationRenewWorkloadIdentityTokens renews tokens of workload identities.
	SeedOperationRenewWorkloadIdentityTokens = "renew-workload-identity-tokens"
	// GardenerOperationRenewKubeconfig renews a gardenlet's kubeconfig.
	GardenerOperationRenewKubeconfig = "renew-kubeconfig"

	OperationRotateCredentialsStart    = "rotate-credentials-start"
	OperationRotateCredentialsComplete = "rotate-credentials-complete"
	// The starts without workers' rollout leave machines alone until OperationRotateRolloutWorkers names their pools.
	OperationRotateCredentialsStartWithoutWorkersRollout       = "rotate-credentials-start-without-workers-rollout"
	OperationRotateCAStartWithoutWorkersRollout                = "rotate-ca-start-without-workers-rollout"
	OperationRotateServiceAccountKeyStartWithoutWorkersRollout = "rotate-serviceaccount-key-start-without-workers-rollout"
	OperationRotateCAStart                                     = "rotate-ca-start"
	OperationRotateCAComplete                                  = "rotate-ca-complete"
	OperationRotateServiceAccountKeyStart                      = "rotate-serviceaccount-key-start"
	OperationRotateServiceAccountKeyComplete                   = "rotate-serviceaccount-key-complete"
	OperationRotateETCDEncryptionKey                           = "rotate-etcd-encryption-key"
	// The two halves of what is one operation from Kubernetes 1.34 on.
	OperationRotateETCDEncryptionKeyStart    = "rotate-etcd-encryption-key-start"
	OperationRotateETCDEncryptionKeyComplete = "rotate-etcd-encryption-key-complete"
	OperationRotateObservabilityCredentials  = "rotate-observability-credentials"
	ShootOperationRotateSSHKeypair           = "rotate-ssh-keypair"
	ShootOperationForceInPlaceUpdate         = "force-in-place-update"
	OperationRolloutWorkers                  = "rollout-workers"
	OperationRotateRolloutWorkers            = "rotate-rollout-workers"
	// ShootOperationRestoreETCD restores the state that the API of a cluster had at a time, which follows in RFC 3339
	// after "=".
	ShootOperationRestoreETCD = "restore-etcd"
)

// Labels.
const (
	// GardenRole says what an object, such as a namespace or a Secret, is there for.
	GardenRole = "gardener.cloud/role"
	// GardenRoleShoot is the role of control planes' namespaces.
	GardenRoleShoot = "shoot"
	// GardenRoleProject is the role of projects' namespaces.
	GardenRoleProject = "project"
	// GardenRoleSeed is the role of seeds' namespaces in the garden.
	GardenRoleSeed = "seed"
	// LabelShootName names the shoot that an object of the garden belongs to.
	LabelShootName = "shoot.gardener.cloud/name"
	// GardenRoleExtension is the role of extensions' namespaces.
	GardenRoleExtension = "extension"
	// GardenRoleInfra is the role of namespaces beside a shoot's, in which machines of the local cloud are pods.
	GardenRoleInfra = "infra"
	// GardenRoleDefaultDomain is the role of Secrets with a domain for shoots.
	GardenRoleDefaultDomain = "default-domain"
	// GardenRoleControlPlane is the role of pods of a control plane.
	GardenRoleControlPlane = "controlplane"
	// GardenRoleSystemComponent is the role of pods that Trellis runs inside a shoot.
	GardenRoleSystemComponent = "system-component"

	// ProjectName is the project that a namespace belongs to.
	ProjectName = "project.gardener.cloud/name"
	// LabelShootStatus sums up a Shoot: healthy, progressing, unhealthy or unknown.
	LabelShootStatus = "shoot.gardener.cloud/status"
	// LabelPrefixSeedName, followed by a seed's name, marks objects that concern the seed.
	LabelPrefixSeedName = "name.seed.gardener.cloud/"
	// LabelShootSelfHosted is "true" on shoots that run their control plane themselves.
	LabelShootSelfHosted = "shoot.gardener.cloud/self-hosted"
	// LabelShootProvider is the provider of a shoot, on its namespace.
	LabelShootProvider = "shoot.gardener.cloud/provider"
	// LabelSeedProvider is the provider of the seed, on a shoot's namespace.
	LabelSeedProvider = "seed.gardener.cloud/provider"
	// LabelNetworkingProvider is the network plugin of a shoot, on its namespace.
	LabelNetworkingProvider = "networking.shoot.gardener.cloud/provider"
	// LabelBackupProvider is the provider of the backups, on a shoot's namespace.
	LabelBackupProvider = "backup.gardener.cloud/provider"
	// LabelExtensionPrefix, followed by a type, marks objects that concern an extension.
	LabelExtensionPrefix = "extensions.gardener.cloud/"
	// LabelExtensionExtensionTypePrefix, followed by a type, marks Shoots and Seeds that use an extension.
	LabelExtensionExtensionTypePrefix = "extensions.extensions.gardener.cloud/"
	// LabelExtensionProviderTypePrefix, followed by a type, marks Shoots, Seeds and CloudProfiles of a provider.
	LabelExtensionProviderTypePrefix = "provider.extensions.gardener.cloud/"
	// LabelExtensionNetworkingTypePrefix, followed by a type, marks Shoots with a network plugin.
	LabelExtensionNetworkingTypePrefix = "networking.extensions.gardener.cloud/"
	// LabelSecretBindingProviderPrefix, followed by a type, marks Secrets that a binding uses for a provider.
	LabelSecretBindingProviderPrefix = "provider.shoot.gardener.cloud/"
	// LabelSecretBindingReference is "true" on Secrets that a SecretBinding uses.
	LabelSecretBindingReference = "reference.gardener.cloud/secretbinding"
	// LabelCredentialsBindingReference is "true" on objects that a CredentialsBinding uses.
	LabelCredentialsBindingReference = "reference.gardener.cloud/credentialsbinding"
	// LabelControllerRegistrationName names the ControllerRegistration that an object in a seed comes from.
	LabelControllerRegistrationName = "controllerregistration.core.gardener.cloud/name"
	// LabelShootNoCleanup is "true" on objects in a shoot that a deletion leaves to their owner.
	LabelShootNoCleanup = "shoot.gardener.cloud/no-cleanup"
	// LabelWorkerPool is the worker pool of a node.
	LabelWorkerPool = "worker.gardener.cloud/pool"
	// LabelWorkerKubernetesVersion is the Kubernetes version of a node's pool.
	LabelWorkerKubernetesVersion = "worker.gardener.cloud/kubernetes-version"
	// AnnotationWorkerInPlaceUpdate on a pool of a Worker, on node-agent's configuration and on nodes names what
	// machines of a pool that is updated in place take over only once they are drained. Where it is another one, they
	// are updated.
	AnnotationWorkerInPlaceUpdate = "worker.gardener.cloud/in-place-update"
	// LabelWorkerPoolSystemComponents is "true" on nodes that take system components.
	LabelWorkerPoolSystemComponents = "worker.gardener.cloud/system-components"
	// LabelNodeCriticalComponent is "true" on pods without which a node is not ready.
	LabelNodeCriticalComponent = "node.gardener.cloud/critical-component"
	// LabelNetworkPolicyAllowed is the value of the labels by which pods of control planes and extensions ask for
	// connections: to DNS, to the API server of their seed, to the networks outside (the internet, private ones, and
	// those that the seed blocks), and to the API server of their namespace's shoot.
	LabelNetworkPolicyAllowed            = "allowed"
	LabelNetworkPolicyToDNS              = "networking.gardener.cloud/to-dns"
	LabelNetworkPolicyToRuntimeAPIServer = "networking.gardener.cloud/to-runtime-apiserver"
	LabelNetworkPolicyToPublicNetworks   = "networking.gardener.cloud/to-public-networks"
	LabelNetworkPolicyToPrivateNetworks  = "networking.gardener.cloud/to-private-networks"
	LabelNetworkPolicyToBlockedCIDRs     = "networking.gardener.cloud/to-blocked-cidrs"
	LabelNetworkPolicyToShootAPIServer   = "networking.resources.gardener.cloud/to-kube-apiserver-tcp-443"
	// LabelNetworkPolicyToEgress asks for connections to the outside by way of the seed's egress proxy.
	LabelNetworkPolicyToEgress = "networking.resources.gardener.cloud/to-garden-egress-tcp-9444"
	// LabelNetworkPolicyToBackupStore asks for connections to where etcd is backed up.
	LabelNetworkPolicyToBackupStore = "networking.trellis.garden/to-backup-store"
	// LabelApp names a component.
	LabelApp = "app"
	// LabelRole names the part that a component plays.
	LabelRole = "role"
)

// Names of objects that several processes know.
const (
	// SecretNameGardenerInternal is the Secret in a shoot's namespace with an administrator's kubeconfig for processes
	// of the seed.
	SecretNameGardenerInternal = "gardener-internal"
	// GardenerSeedLeaseNamespace holds one Lease for each seed in the garden, of the seed's name, which its gardenlet
	// renews.
	GardenerSeedLeaseNamespace = "gardener-system-seed-lease"
	// ClusterAutoscalerPriorityConfigMap in a shoot's kube-system has the priorities of node groups.
	ClusterAutoscalerPriorityConfigMap = "cluster-autoscaler-priority-expander"
	// ClusterAutoscalerPriorityKey is the key of ClusterAutoscalerPriorityConfigMap.
	ClusterAutoscalerPriorityKey = "priorities"
)

// Taints.
const (
	// SeedTaintProtected is the taint of seeds for shoots of the garden namespace only.
	SeedTaintProtected = "seed.gardener.cloud/protected"
	// TaintNodeCriticalComponentsNotReady is the taint of nodes on which a critical component is not ready yet.
	TaintNodeCriticalComponentsNotReady = "node.gardener.cloud/critical-components-not-ready"
)

// Finalizers.
const (
	// GardenerName is the finalizer of objects that are in use or not yet cleaned up.
	GardenerName = "gardener"
	// FinalizerControllerInstallation keeps a ControllerInstallation until gardenlet has uninstalled the extension.
	FinalizerControllerInstallation = "core.gardener.cloud/controllerinstallation"
	// FinalizerReferenceProtection is the finalizer of objects that a Shoot refers to.
	FinalizerReferenceProtection = "gardener.cloud/reference-protection"
	// FinalizerShootState is the finalizer of ShootStates.
	FinalizerShootState = "core.gardener.cloud/shootstate"
)

// Conditions of a Shoot.
const (
	ShootAPIServerAvailable             ConditionType = "APIServerAvailable"
	ShootControlPlaneHealthy            ConditionType = "ControlPlaneHealthy"
	ShootObservabilityComponentsHealthy ConditionType = "ObservabilityComponentsHealthy"
	ShootEveryNodeReady                 ConditionType = "EveryNodeReady"
	ShootSystemComponentsHealthy        ConditionType = "SystemComponentsHealthy"
	// ShootEtcdBackupReady says whether all changes of etcd-main come to the store of its seed, if that has one.
	ShootEtcdBackupReady ConditionType = "EtcdBackupReady"
	// EtcdRestoredOnTrial stands in the message of that condition, before the time (RFC 3339) at which the newest
	// backups were restored on trial.
	EtcdRestoredOnTrial = "restored on trial at "
)

// Constraints of a Shoot.
const (
	ShootHibernationPossible                   ConditionType = "HibernationPossible"
	ShootMaintenancePreconditionsSatisfied     ConditionType = "MaintenancePreconditionsSatisfied"
	ShootCACertificateValiditiesAcceptable     ConditionType = "CACertificateValiditiesAcceptable"
	ShootCRDsWithProblematicConversionWebhooks ConditionType = "CRDsWithProblematicConversionWebhooks"
	ShootManualInPlaceWorkersUpdated           ConditionType = "ManualInPlaceWorkersUpdated"
	// ShootEtcdSpaceSufficient says whether the etcds of the control plane have room for more objects.
	ShootEtcdSpaceSufficient ConditionType = "EtcdSpaceSufficient"
)

// Conditions of a Seed.
const (
	SeedGardenletReady                    ConditionType = "GardenletReady"
	SeedBackupBucketsReady                ConditionType = "BackupBucketsReady"
	SeedExtensionsReady                   ConditionType = "ExtensionsReady"
	SeedSystemComponentsHealthy           ConditionType = "SeedSystemComponentsHealthy"
	SeedEmergencyStopShootReconciliations ConditionType = "EmergencyStopShootReconciliations"
)

// Conditions of a ControllerInstallation.
const (
	ControllerInstallationValid       ConditionType = "Valid"
	ControllerInstallationInstalled   ConditionType = "Installed"
	ControllerInstallationHealthy     ConditionType = "Healthy"
	ControllerInstallationProgressing ConditionType = "Progressing"
	ControllerInstallationRequired    ConditionType = "Required"
)

// Roles of a project's members.
const (
	ProjectMemberOwner                 = "owner"
	ProjectMemberAdmin                 = "admin"
	ProjectMemberViewer                = "viewer"
	ProjectMemberUserAccessManager     = "uam"
	ProjectMemberServiceAccountManager = "serviceaccountmanager"
	// ProjectMemberExtensionPrefix begins roles that extensions define.
	ProjectMemberExtensionPrefix = "extension:"
)

// Names of addresses in the status of a Shoot.
const (
	AdvertisedAddressExternal             = "external"
	AdvertisedAddressInternal             = "internal"
	AdvertisedAddressUnmanaged            = "unmanaged"
	AdvertisedAddressWildcardTLSSeedBound = "wildcard-tls-seed-bound"
	AdvertisedAddressServiceAccountIssuer = "service-account-issuer"
)

// Users and groups.
const (
	// GardenAPIServerUser and the others are the users as which the garden's own processes speak to the garden's
	// kube-apiserver: common names of client certificates.
	GardenAPIServerUser         = "gardener.cloud:system:garden-apiserver"
	GardenControllerManagerUser = "gardener.cloud:system:garden-controller-manager"
	GardenSchedulerUser         = "gardener.cloud:system:garden-scheduler"
	// GardenKubeAPIServerUser is as whom the garden's kube-apiserver asks garden-apiserver who may do what: the common
	// name of its client certificate. Nobody else may ask.
	GardenKubeAPIServerUser = "gardener.cloud:system:kube-apiserver"
	// ClusterRoleReadGlobalResources is what everybody in the garden who is authenticated may do.
	ClusterRoleReadGlobalResources = "gardener.cloud:system:read-global-resources"
	// SeedsGroup is the group of all gardenlets.
	SeedsGroup = "gardener.cloud:system:seeds"
	// SeedUserNamePrefix, followed by a seed's name, is the user name of its gardenlet.
	SeedUserNamePrefix = "gardener.cloud:system:seed:"
	// ShootGroupSystemAdmins is the group, inside a shoot, of operators.
	ShootGroupSystemAdmins = "gardener.cloud:system:admins"
	// ShootGroupProjectAdmins is the group, inside a shoot, of its project's admins.
	ShootGroupProjectAdmins = "gardener.cloud:project:admins"
	// ShootGroupSystemViewers is the group, inside a shoot, of operators that may only read.
	ShootGroupSystemViewers = "gardener.cloud:system:viewers"
	// ShootGroupProjectViewers is the group, inside a shoot, of its project's viewers.
	ShootGroupProjectViewers = "gardener.cloud:project:viewers"
	// AdminUserNamePrefix, followed by the caller, is the user name in an admin kubeconfig.
	AdminUserNamePrefix = "gardener.cloud:admin:"
	// ViewerUserNamePrefix, followed by the caller, is the user name in a viewer kubeconfig.
	ViewerUserNamePrefix = "gardener.cloud:viewer:"
)

// Names of what belongs to a Shoot in the garden: <shoot>.<suffix>.
const (
	// ShootProjectConfigMapSuffixCACluster is the suffix of the ConfigMap with the certificates to trust under
	// DataKeyCACert.
	ShootProjectConfigMapSuffixCACluster = "ca-cluster"
	// ShootProjectConfigMapSuffixOperation is the suffix of the ConfigMap that tells of the last operation task by
	// task (pkg/operationgraph).
	ShootProjectConfigMapSuffixOperation = "operation"
	// ShootProjectSecretSuffixCAClient is the suffix of the Secret with the CA that signs client certificates.
	ShootProjectSecretSuffixCAClient = "ca-client"
	// SecretTypeCAClient is the type of the Secret with the CA that signs client certificates.
	SecretTypeCAClient = "trellis.garden/ca-client"
	// DataKeyCACert is the key of certificates in PEM.
	DataKeyCACert = "ca.crt"
	// DataKeyCAKey is the key of a CA's private key in PEM.
	DataKeyCAKey = "ca.key"
	// DataKeyKubeconfig is the key of a kubeconfig.
	DataKeyKubeconfig = "kubeconfig"
)

// ResourceShoots is the resource of a Seed's capacity that counts control planes.
const ResourceShoots = "shoots"

// ResourceWorks is the resource, of fleets, that embeds what is placed in members, Secrets among it. It is encrypted as
// Secrets are.
const ResourceWorks = "works.work.karmada.io"
