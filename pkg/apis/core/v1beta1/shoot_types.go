package v1beta1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +genclient
// +genclient:method=CreateAdminKubeconfigRequest,verb=create,subresource=adminkubeconfig,input=github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1.AdminKubeconfigRequest,result=github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1.AdminKubeconfigRequest
// +genclient:method=CreateViewerKubeconfigRequest,verb=create,subresource=viewerkubeconfig,input=github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1.ViewerKubeconfigRequest,result=github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1.ViewerKubeconfigRequest
// +genclient:method=UpdateBinding,verb=update,subresource=binding,input=Shoot,result=Shoot
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Shoot is a Kubernetes cluster for a user: a control plane in a seed and, unless it is workerless, machines in the
// user's infrastructure.
type Shoot struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// What is wanted.
	// +optional
	Spec ShootSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// What was observed; written by controllers.
	// +optional
	Status ShootStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ShootList is a list of Shoot objects.
type ShootList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// The objects.
	Items []Shoot `json:"items" protobuf:"bytes,2,opt,name=items"`
}

// ShootSpec is what the owner of a Shoot asks for.
type ShootSpec struct {
	// Components that used to be installed on demand.
	//
	// Deprecated: forbidden from Kubernetes 1.35 on; install what you need with a tool of your choice.
	// +optional
	Addons *Addons `json:"addons,omitempty" protobuf:"bytes,1,opt,name=addons"`
	// Name of a CloudProfile; kept equal to cloudProfile for older clients.
	//
	// Deprecated: use cloudProfile; forbidden from Kubernetes 1.34 on.
	// +optional
	CloudProfileName *string `json:"cloudProfileName,omitempty" protobuf:"bytes,2,opt,name=cloudProfileName"`
	// Domain of the cluster and the DNS providers that serve it.
	// +optional
	DNS *DNS `json:"dns,omitempty" protobuf:"bytes,3,opt,name=dns"`
	// Extensions that are asked for beyond those every cluster gets.
	// +optional
	Extensions []Extension `json:"extensions,omitempty" protobuf:"bytes,4,opt,name=extensions"`
	// Whether, and when, the cluster sleeps.
	// +optional
	Hibernation *Hibernation `json:"hibernation,omitempty" protobuf:"bytes,5,opt,name=hibernation"`
	// Version and settings of the Kubernetes components.
	Kubernetes Kubernetes `json:"kubernetes" protobuf:"bytes,6,opt,name=kubernetes"`
	// Address ranges of the cluster and its network plugin. Required unless the cluster is workerless.
	// +optional
	Networking *Networking `json:"networking,omitempty" protobuf:"bytes,7,opt,name=networking"`
	// When the cluster may be changed without its owner asking, and what is updated then.
	// +optional
	Maintenance *Maintenance `json:"maintenance,omitempty" protobuf:"bytes,8,opt,name=maintenance"`
	// Who is told about alerts.
	// +optional
	Monitoring *Monitoring `json:"monitoring,omitempty" protobuf:"bytes,9,opt,name=monitoring"`
	// The infrastructure, and the machines in it.
	Provider Provider `json:"provider" protobuf:"bytes,10,opt,name=provider"`
	// What the cluster is for.
	// +optional
	Purpose *ShootPurpose `json:"purpose,omitempty" protobuf:"bytes,11,opt,name=purpose"`
	// Name of a region in the CloudProfile. Immutable.
	Region string `json:"region" protobuf:"bytes,12,opt,name=region"`
	// Name of the SecretBinding with the credentials for the infrastructure. Immutable.
	//
	// Deprecated: use credentialsBindingName; forbidden from Kubernetes 1.34 on.
	// +optional
	SecretBindingName *string `json:"secretBindingName,omitempty" protobuf:"bytes,13,opt,name=secretBindingName"`
	// Name of the seed that runs the control plane. Set through the binding subresource only.
	// +optional
	SeedName *string `json:"seedName,omitempty" protobuf:"bytes,14,opt,name=seedName"`
	// Narrows the seeds that the scheduler may choose.
	// +optional
	SeedSelector *SeedSelector `json:"seedSelector,omitempty" protobuf:"bytes,15,opt,name=seedSelector"`
	// Objects in the shoot's namespace that parts of this specification refer to by name.
	// +optional
	Resources []NamedResourceReference `json:"resources,omitempty" protobuf:"bytes,16,opt,name=resources"`
	// Taints of seeds that this cluster accepts.
	// +optional
	// +patchMergeKey=key
	// +patchStrategy=merge
	Tolerations []Toleration `json:"tolerations,omitempty" patchStrategy:"merge" patchMergeKey:"key" protobuf:"bytes,17,opt,name=tolerations"`
	// Name of the ExposureClass that says how the control plane is exposed. Immutable.
	// +optional
	ExposureClassName *string `json:"exposureClassName,omitempty" protobuf:"bytes,18,opt,name=exposureClassName"`
	// Settings of components that run in kube-system of the cluster.
	// +optional
	SystemComponents *SystemComponents `json:"systemComponents,omitempty" protobuf:"bytes,19,opt,name=systemComponents"`
	// Availability of the control plane.
	// +optional
	ControlPlane *ControlPlane `json:"controlPlane,omitempty" protobuf:"bytes,20,opt,name=controlPlane"`
	// Name of the scheduler that assigns the seed. Immutable.
	// +optional
	SchedulerName *string `json:"schedulerName,omitempty" protobuf:"bytes,21,opt,name=schedulerName"`
	// The CloudProfile or NamespacedCloudProfile that says what can be ordered.
	// +optional
	CloudProfile *CloudProfileReference `json:"cloudProfile,omitempty" protobuf:"bytes,22,opt,name=cloudProfile"`
	// Name of the CredentialsBinding with the credentials for the infrastructure. Cannot be unset.
	// +optional
	CredentialsBindingName *string `json:"credentialsBindingName,omitempty" protobuf:"bytes,23,opt,name=credentialsBindingName"`
	// Access restrictions that the region has to honour.
	// +optional
	AccessRestrictions []AccessRestrictionWithOptions `json:"accessRestrictions,omitempty" protobuf:"bytes,24,opt,name=accessRestrictions"`
}

// ShootPurpose is what a cluster is for.
type ShootPurpose string

const (
	// ShootPurposeEvaluation is trying things out.
	ShootPurposeEvaluation ShootPurpose = "evaluation"
	// ShootPurposeTesting is tests.
	ShootPurposeTesting ShootPurpose = "testing"
	// ShootPurposeDevelopment is development.
	ShootPurposeDevelopment ShootPurpose = "development"
	// ShootPurposeProduction is production.
	ShootPurposeProduction ShootPurpose = "production"
	// ShootPurposeInfrastructure is serving other clusters; only in the garden namespace.
	ShootPurposeInfrastructure ShootPurpose = "infrastructure"
)

// Addons lists components that used to be installed on demand.
type Addons struct {
	// Settings of the Kubernetes dashboard.
	// +optional
	KubernetesDashboard *KubernetesDashboard `json:"kubernetesDashboard,omitempty" protobuf:"bytes,1,opt,name=kubernetesDashboard"`
	// Settings of the nginx ingress controller.
	// +optional
	NginxIngress *NginxIngress `json:"nginxIngress,omitempty" protobuf:"bytes,2,opt,name=nginxIngress"`
}

// KubernetesDashboard configures the Kubernetes dashboard.
type KubernetesDashboard struct {
	Addon `json:",inline" protobuf:"bytes,2,opt,name=addon"`
	// How users log in: token.
	// +optional
	AuthenticationMode *string `json:"authenticationMode,omitempty" protobuf:"bytes,1,opt,name=authenticationMode"`
}

// NginxIngress configures the nginx ingress controller.
type NginxIngress struct {
	Addon `json:",inline" protobuf:"bytes,1,opt,name=addon"`
	// Ranges in CIDR notation that may reach the load balancer.
	// +optional
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty" protobuf:"bytes,2,opt,name=loadBalancerSourceRanges"`
	// Entries of the controller's ConfigMap.
	// +optional
	Config map[string]string `json:"config,omitempty" protobuf:"bytes,3,opt,name=config"`
	// Traffic policy of the load balancer's service. Defaults to Cluster.
	// +optional
	ExternalTrafficPolicy *corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty" protobuf:"bytes,4,opt,name=externalTrafficPolicy"`
}

// DNS names the domain of a shoot and who serves it.
type DNS struct {
	// External domain of the cluster, under which its API server is api.<domain>. Immutable once set; defaulted from
	// the seed's default domains.
	// +optional
	Domain *string `json:"domain,omitempty" protobuf:"bytes,1,opt,name=domain"`
	// DNS providers that serve the domain when it is not a default domain.
	//
	// Deprecated: configure further providers through an extension.
	// +optional
	Providers []DNSProvider `json:"providers,omitempty" protobuf:"bytes,2,opt,name=providers"`
}

// DNSProvider says who serves which domains with what credentials.
type DNSProvider struct {
	// Domains that this provider serves.
	//
	// Deprecated: kept for compatibility; do not use it in new objects.
	// +optional
	Domains *DNSIncludeExclude `json:"domains,omitempty" protobuf:"bytes,1,opt,name=domains"`
	// Whether this provider serves the cluster's own domain.
	//
	// Deprecated: kept for compatibility; do not use it in new objects.
	// +optional
	Primary *bool `json:"primary,omitempty" protobuf:"bytes,2,opt,name=primary"`
	// Name of a Secret in the shoot's namespace with the provider's credentials.
	//
	// Deprecated: use credentialsRef; forbidden from Kubernetes 1.35 on.
	// +optional
	SecretName *string `json:"secretName,omitempty" protobuf:"bytes,3,opt,name=secretName"`
	// Type of the DNS provider, such as aws-route53. "unmanaged" turns DNS records off.
	// +optional
	Type *string `json:"type,omitempty" protobuf:"bytes,4,opt,name=type"`
	// Hosted zones that this provider serves.
	//
	// Deprecated: kept for compatibility; do not use it in new objects.
	// +optional
	Zones *DNSIncludeExclude `json:"zones,omitempty" protobuf:"bytes,5,opt,name=zones"`
	// Name of an entry of the shoot's resources that holds the credentials.
	// +optional
	CredentialsRef *autoscalingv1.CrossVersionObjectReference `json:"credentialsRef,omitempty" protobuf:"bytes,6,opt,name=credentialsRef"`
}

// DNSIncludeExclude is a set given by what is in and what is out of it.
type DNSIncludeExclude struct {
	// Members.
	// +optional
	Include []string `json:"include,omitempty" protobuf:"bytes,1,opt,name=include"`
	// What is taken out again.
	// +optional
	Exclude []string `json:"exclude,omitempty" protobuf:"bytes,2,opt,name=exclude"`
}

// Hibernation says whether and when a cluster sleeps: no machines and no control plane run, state is kept.
type Hibernation struct {
	// Whether the cluster is to sleep now. Schedules flip this field.
	// +optional
	Enabled *bool `json:"enabled,omitempty" protobuf:"bytes,1,opt,name=enabled"`
	// When to fall asleep and to wake up.
	// +optional
	Schedules []HibernationSchedule `json:"schedules,omitempty" protobuf:"bytes,2,opt,name=schedules"`
}

// HibernationSchedule is a pair of cron expressions; at least one of them is set.
type HibernationSchedule struct {
	// When to fall asleep, as a cron expression of five fields.
	// +optional
	Start *string `json:"start,omitempty" protobuf:"bytes,1,opt,name=start"`
	// When to wake up, as a cron expression of five fields.
	// +optional
	End *string `json:"end,omitempty" protobuf:"bytes,2,opt,name=end"`
	// Time zone of start and end, as in the IANA database. Defaults to UTC.
	// +optional
	Location *string `json:"location,omitempty" protobuf:"bytes,3,opt,name=location"`
}

// Networking holds address ranges and the network plugin.
type Networking struct {
	// Type of the Network extension, such as flannel. Immutable.
	// +optional
	Type *string `json:"type,omitempty" protobuf:"bytes,1,opt,name=type"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
	// Range of pod addresses in CIDR notation. Immutable.
	// +optional
	Pods *string `json:"pods,omitempty" protobuf:"bytes,3,opt,name=pods"`
	// Range of node addresses in CIDR notation. Immutable once set.
	// +optional
	Nodes *string `json:"nodes,omitempty" protobuf:"bytes,4,opt,name=nodes"`
	// Range of service addresses in CIDR notation. Immutable.
	// +optional
	Services *string `json:"services,omitempty" protobuf:"bytes,5,opt,name=services"`
	// IP families in order of preference. Defaults to ["IPv4"].
	// +optional
	IPFamilies []IPFamily `json:"ipFamilies,omitempty" protobuf:"bytes,6,opt,name=ipFamilies"`
}

// Maintenance says when and how a cluster is maintained.
type Maintenance struct {
	// What is updated automatically.
	// +optional
	AutoUpdate *MaintenanceAutoUpdate `json:"autoUpdate,omitempty" protobuf:"bytes,1,opt,name=autoUpdate"`
	// Daily time window for maintenance. Defaults to one hour at a time of night that depends on the cluster.
	// +optional
	TimeWindow *MaintenanceTimeWindow `json:"timeWindow,omitempty" protobuf:"bytes,2,opt,name=timeWindow"`
	// Whether changes of the specification wait for the time window. Defaults to false.
	// +optional
	ConfineSpecUpdateRollout *bool `json:"confineSpecUpdateRollout,omitempty" protobuf:"bytes,3,opt,name=confineSpecUpdateRollout"`
	// What credentials are rotated automatically.
	// +optional
	AutoRotation *MaintenanceAutoRotation `json:"autoRotation,omitempty" protobuf:"bytes,4,opt,name=autoRotation"`
}

// MaintenanceAutoUpdate says what is updated automatically.
type MaintenanceAutoUpdate struct {
	// Whether Kubernetes is updated to the newest patch, and to the next minor version when its own expires. Defaults
	// to true.
	KubernetesVersion bool `json:"kubernetesVersion" protobuf:"bytes,1,opt,name=kubernetesVersion"`
	// Whether machine images are updated. Defaults to true.
	// +optional
	MachineImageVersion *bool `json:"machineImageVersion,omitempty" protobuf:"bytes,2,opt,name=machineImageVersion"`
}

// MaintenanceTimeWindow is a daily time window of 30 minutes to 6 hours.
type MaintenanceTimeWindow struct {
	// Begin as HHMMSS+hhmm, such as 220000+0100.
	Begin string `json:"begin" protobuf:"bytes,1,opt,name=begin"`
	// End as HHMMSS+hhmm.
	End string `json:"end" protobuf:"bytes,2,opt,name=end"`
}

// MaintenanceAutoRotation says what is rotated automatically.
type MaintenanceAutoRotation struct {
	// Periods per kind of credential.
	// +optional
	Credentials *MaintenanceCredentialsAutoRotation `json:"credentials,omitempty" protobuf:"bytes,1,opt,name=credentials"`
}

// MaintenanceCredentialsAutoRotation says how often credentials are rotated.
type MaintenanceCredentialsAutoRotation struct {
	// Passwords of the monitoring. Not offered, except for the value 168h, which has no effect: control planes have no
	// monitoring with passwords of its own.
	// +optional
	Observability *MaintenanceRotationConfig `json:"observability,omitempty" protobuf:"bytes,1,opt,name=observability"`
	// SSH key of the machines.
	// +optional
	SSHKeypair *MaintenanceRotationConfig `json:"sshKeypair,omitempty" protobuf:"bytes,2,opt,name=sshKeypair"`
	// Key for encryption at rest.
	// +optional
	ETCDEncryptionKey *MaintenanceRotationConfig `json:"etcdEncryptionKey,omitempty" protobuf:"bytes,3,opt,name=etcdEncryptionKey"`
}

// MaintenanceRotationConfig says how often something is rotated.
type MaintenanceRotationConfig struct {
	// Period, 30m to 90 days; 0 turns automatic rotation off. Defaults to 7 days.
	// +optional
	RotationPeriod *metav1.Duration `json:"rotationPeriod,omitempty" protobuf:"bytes,1,opt,name=rotationPeriod"`
}

// Monitoring configures monitoring.
type Monitoring struct {
	// Who is told about alerts.
	// +optional
	Alerting *Alerting `json:"alerting,omitempty" protobuf:"bytes,1,opt,name=alerting"`
}

// Alerting says who is told about alerts.
type Alerting struct {
	// E-mail addresses.
	// +optional
	EmailReceivers []string `json:"emailReceivers,omitempty" protobuf:"bytes,1,opt,name=emailReceivers"`
}

// SystemComponents configures components in kube-system of a cluster.
type SystemComponents struct {
	// Settings of CoreDNS.
	// +optional
	CoreDNS *CoreDNS `json:"coreDNS,omitempty" protobuf:"bytes,1,opt,name=coreDNS"`
	// Settings of the DNS cache on nodes.
	// +optional
	NodeLocalDNS *NodeLocalDNS `json:"nodeLocalDNS,omitempty" protobuf:"bytes,2,opt,name=nodeLocalDNS"`
}

// CoreDNS configures CoreDNS.
type CoreDNS struct {
	// How it scales.
	// +optional
	Autoscaling *CoreDNSAutoscaling `json:"autoscaling,omitempty" protobuf:"bytes,1,opt,name=autoscaling"`
	// Names to answer without going upstream.
	// +optional
	Rewriting *CoreDNSRewriting `json:"rewriting,omitempty" protobuf:"bytes,2,opt,name=rewriting"`
}

// CoreDNSAutoscaling says how CoreDNS scales.
type CoreDNSAutoscaling struct {
	// By CPU usage, which is not offered, or by the size of the cluster. Defaults to cluster-proportional.
	Mode CoreDNSAutoscalingMode `json:"mode" protobuf:"bytes,1,opt,name=mode"`
}

// CoreDNSAutoscalingMode is how CoreDNS scales.
type CoreDNSAutoscalingMode string

const (
	// CoreDNSAutoscalingModeHorizontal scales by CPU usage.
	CoreDNSAutoscalingModeHorizontal CoreDNSAutoscalingMode = "horizontal"
	// CoreDNSAutoscalingModeClusterProportional scales by the nodes and cores that the pools may have.
	CoreDNSAutoscalingModeClusterProportional CoreDNSAutoscalingMode = "cluster-proportional"
)

// CoreDNSRewriting shortens look-ups.
type CoreDNSRewriting struct {
	// Suffixes of names for which the search path is not followed.
	// +optional
	CommonSuffixes []string `json:"commonSuffixes,omitempty" protobuf:"bytes,1,opt,name=commonSuffixes"`
}

// NodeLocalDNS configures the DNS cache on nodes.
type NodeLocalDNS struct {
	// Whether it runs.
	Enabled bool `json:"enabled" protobuf:"bytes,1,opt,name=enabled"`
	// Whether CoreDNS is asked by TCP. Defaults to true.
	// +optional
	ForceTCPToClusterDNS *bool `json:"forceTCPToClusterDNS,omitempty" protobuf:"bytes,2,opt,name=forceTCPToClusterDNS"`
	// Whether upstream servers are asked by TCP. Defaults to true.
	// +optional
	ForceTCPToUpstreamDNS *bool `json:"forceTCPToUpstreamDNS,omitempty" protobuf:"bytes,3,opt,name=forceTCPToUpstreamDNS"`
	// Whether all look-ups go through CoreDNS. Defaults to false.
	// +optional
	DisableForwardToUpstreamDNS *bool `json:"disableForwardToUpstreamDNS,omitempty" protobuf:"bytes,4,opt,name=disableForwardToUpstreamDNS"`
}

// ControlPlane says how available a control plane is.
type ControlPlane struct {
	// Failures to tolerate. May be added to a cluster that runs; cannot be removed once the cluster has a seed.
	// +optional
	HighAvailability *HighAvailability `json:"highAvailability,omitempty" protobuf:"bytes,1,opt,name=highAvailability"`
	// Zones of the seed in which the control plane runs.
	// +optional
	Zones []string `json:"zones,omitempty" protobuf:"bytes,2,opt,name=zones"`
}

// HighAvailability says what failures are tolerated.
type HighAvailability struct {
	// The largest failure that is tolerated.
	FailureTolerance FailureTolerance `json:"failureTolerance" protobuf:"bytes,1,opt,name=failureTolerance"`
}

// FailureTolerance is a failure that is tolerated.
type FailureTolerance struct {
	// What may fail: node or zone. Immutable once the cluster has a seed.
	Type FailureToleranceType `json:"type" protobuf:"bytes,1,opt,name=type"`
}

// FailureToleranceType is what may fail.
type FailureToleranceType string

const (
	// FailureToleranceTypeNode is a node of the seed.
	FailureToleranceTypeNode FailureToleranceType = "node"
	// FailureToleranceTypeZone is a zone of the seed.
	FailureToleranceTypeZone FailureToleranceType = "zone"
)

// AccessRestrictionWithOptions is an access restriction with settings.
type AccessRestrictionWithOptions struct {
	AccessRestriction `json:",inline" protobuf:"bytes,1,opt,name=accessRestriction"`
	// Settings of the restriction.
	// +optional
	Options map[string]string `json:"options,omitempty" protobuf:"bytes,2,opt,name=options"`
}

// Addon is what all addons have in common.
type Addon struct {
	// Whether the addon is installed.
	Enabled bool `json:"enabled" protobuf:"bytes,1,opt,name=enabled"`
}
