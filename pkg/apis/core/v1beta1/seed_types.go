package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Seed is a Kubernetes cluster that hosts control planes of shoots.
type Seed struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// What is wanted.
	// +optional
	Spec SeedSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// What was observed; written by controllers.
	// +optional
	Status SeedStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SeedList is a list of Seed objects.
type SeedList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// The objects.
	Items []Seed `json:"items" protobuf:"bytes,2,opt,name=items"`
}

// Backup says where etcds are backed up.
type Backup struct {
	// Type of the object store's provider. Immutable.
	Provider string `json:"provider" protobuf:"bytes,1,opt,name=provider"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
	// Region of the object store. Immutable.
	// +optional
	Region *string `json:"region,omitempty" protobuf:"bytes,3,opt,name=region"`
	// Secret or WorkloadIdentity with the credentials.
	// +optional
	CredentialsRef *corev1.ObjectReference `json:"credentialsRef,omitempty" protobuf:"bytes,5,opt,name=credentialsRef"`
}

// SeedSpec is how a Seed is to be used.
type SeedSpec struct {
	// Where etcds of the seed's shoots are backed up; no backups when left out.
	// +optional
	Backup *Backup `json:"backup,omitempty" protobuf:"bytes,1,opt,name=backup"`
	// Domains of the seed's shoots.
	DNS SeedDNS `json:"dns" protobuf:"bytes,2,opt,name=dns"`
	// Address ranges of the seed.
	Networks SeedNetworks `json:"networks" protobuf:"bytes,3,opt,name=networks"`
	// The infrastructure of the seed.
	Provider SeedProvider `json:"provider" protobuf:"bytes,4,opt,name=provider"`
	// Keep shoots away that do not tolerate them.
	// +optional
	Taints []SeedTaint `json:"taints,omitempty" protobuf:"bytes,6,opt,name=taints"`
	// What to know about volumes in the seed.
	// +optional
	Volume *SeedVolume `json:"volume,omitempty" protobuf:"bytes,7,opt,name=volume"`
	// How the seed is run.
	// +optional
	Settings *SeedSettings `json:"settings,omitempty" protobuf:"bytes,8,opt,name=settings"`
	// How the seed is reached.
	// +optional
	Ingress *Ingress `json:"ingress,omitempty" protobuf:"bytes,9,opt,name=ingress"`
	// Access restrictions that the seed honours.
	// +optional
	AccessRestrictions []AccessRestriction `json:"accessRestrictions,omitempty" protobuf:"bytes,10,opt,name=accessRestrictions"`
	// Extensions for the seed itself.
	// +optional
	Extensions []Extension `json:"extensions,omitempty" protobuf:"bytes,11,opt,name=extensions"`
	// Objects that parts of this specification refer to by name.
	// +optional
	Resources []NamedResourceReference `json:"resources,omitempty" protobuf:"bytes,12,opt,name=resources"`
}

// SeedDNS holds the domains of a seed's shoots.
type SeedDNS struct {
	// DNS provider for the ingress domain.
	// +optional
	Provider *SeedDNSProvider `json:"provider,omitempty" protobuf:"bytes,2,opt,name=provider"`
	// Domain under which components reach the API servers.
	// +optional
	Internal *SeedDNSProviderConfig `json:"internal,omitempty" protobuf:"bytes,3,opt,name=internal"`
	// Domains that shoots without one of their own get; the first is taken.
	// +optional
	Defaults []SeedDNSProviderConfig `json:"defaults,omitempty" protobuf:"bytes,4,opt,name=defaults"`
}

// SeedDNSProvider is the DNS provider for a seed's ingress domain.
type SeedDNSProvider struct {
	// Type of the DNS provider.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// Secret or WorkloadIdentity with the credentials.
	// +optional
	CredentialsRef *corev1.ObjectReference `json:"credentialsRef,omitempty" protobuf:"bytes,5,opt,name=credentialsRef"`
}

// SeedDNSProviderConfig is a domain with its provider.
type SeedDNSProviderConfig struct {
	// Type of the DNS provider.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// Domain.
	Domain string `json:"domain" protobuf:"bytes,2,opt,name=domain"`
	// Hosted zone of the domain.
	// +optional
	Zone *string `json:"zone,omitempty" protobuf:"bytes,3,opt,name=zone"`
	// Secret or WorkloadIdentity with the credentials.
	CredentialsRef corev1.ObjectReference `json:"credentialsRef" protobuf:"bytes,4,opt,name=credentialsRef"`
}

// SeedNetworks holds address ranges of a seed in CIDR notation. Immutable.
type SeedNetworks struct {
	// Range of node addresses.
	// +optional
	Nodes *string `json:"nodes,omitempty" protobuf:"bytes,1,opt,name=nodes"`
	// Range of pod addresses.
	Pods string `json:"pods" protobuf:"bytes,2,opt,name=pods"`
	// Range of service addresses.
	Services string `json:"services" protobuf:"bytes,3,opt,name=services"`
	// Ranges for shoots that do not choose their own.
	// +optional
	ShootDefaults *ShootNetworks `json:"shootDefaults,omitempty" protobuf:"bytes,4,opt,name=shootDefaults"`
	// Ranges that control planes must not reach.
	// +optional
	BlockCIDRs []string `json:"blockCIDRs,omitempty" protobuf:"bytes,5,opt,name=blockCIDRs"`
	// IP families in order of preference. Defaults to ["IPv4"].
	// +optional
	IPFamilies []IPFamily `json:"ipFamilies,omitempty" protobuf:"bytes,6,opt,name=ipFamilies"`
}

// ShootNetworks holds default ranges for shoots in CIDR notation.
type ShootNetworks struct {
	// Range of pod addresses.
	// +optional
	Pods *string `json:"pods,omitempty" protobuf:"bytes,1,opt,name=pods"`
	// Range of service addresses.
	// +optional
	Services *string `json:"services,omitempty" protobuf:"bytes,2,opt,name=services"`
}

// SeedProvider is the infrastructure of a seed.
type SeedProvider struct {
	// Type of the infrastructure.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
	// Region of the seed.
	Region string `json:"region" protobuf:"bytes,3,opt,name=region"`
	// Zones of the seed's nodes.
	// +optional
	Zones []string `json:"zones,omitempty" protobuf:"bytes,4,opt,name=zones"`
}

// SeedTaint keeps shoots away that do not tolerate it.
type SeedTaint struct {
	// Key, such as seed.gardener.cloud/protected.
	Key string `json:"key" protobuf:"bytes,1,opt,name=key"`
	// Value.
	// +optional
	Value *string `json:"value,omitempty" protobuf:"bytes,2,opt,name=value"`
}

// SeedVolume tells what to know about volumes in a seed.
type SeedVolume struct {
	// Least size of a volume.
	// +optional
	MinimumSize *resource.Quantity `json:"minimumSize,omitempty" protobuf:"bytes,1,opt,name=minimumSize"`
	// Storage classes per purpose.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	Providers []SeedVolumeProvider `json:"providers,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,2,opt,name=providers"`
}

// SeedVolumeProvider is the storage class for a purpose.
type SeedVolumeProvider struct {
	// Purpose of the volume: etcd-main.
	Purpose string `json:"purpose" protobuf:"bytes,1,opt,name=purpose"`
	// Name of the provisioner.
	Name string `json:"name" protobuf:"bytes,2,opt,name=name"`
}

// SeedSettings says how a seed is run.
type SeedSettings struct {
	// Capacity kept free so that new control planes start at once.
	// +optional
	ExcessCapacityReservation *SeedSettingExcessCapacityReservation `json:"excessCapacityReservation,omitempty" protobuf:"bytes,1,opt,name=excessCapacityReservation"`
	// Whether the scheduler uses the seed.
	// +optional
	Scheduling *SeedSettingScheduling `json:"scheduling,omitempty" protobuf:"bytes,2,opt,name=scheduling"`
	// Settings of services of type LoadBalancer.
	// +optional
	LoadBalancerServices *SeedSettingLoadBalancerServices `json:"loadBalancerServices,omitempty" protobuf:"bytes,4,opt,name=loadBalancerServices"`
	// Settings of the vertical pod autoscaler.
	// +optional
	VerticalPodAutoscaler *SeedSettingVerticalPodAutoscaler `json:"verticalPodAutoscaler,omitempty" protobuf:"bytes,5,opt,name=verticalPodAutoscaler"`
	// Settings of the watchdogs of dependencies.
	// +optional
	DependencyWatchdog *SeedSettingDependencyWatchdog `json:"dependencyWatchdog,omitempty" protobuf:"bytes,7,opt,name=dependencyWatchdog"`
	// Whether traffic stays in its zone.
	// +optional
	TopologyAwareRouting *SeedSettingTopologyAwareRouting `json:"topologyAwareRouting,omitempty" protobuf:"bytes,8,opt,name=topologyAwareRouting"`
	// How zones for control planes are chosen.
	// +optional
	ZoneSelection *SeedSettingZoneSelection `json:"zoneSelection,omitempty" protobuf:"bytes,9,opt,name=zoneSelection"`
	// Whether volumes grow by themselves.
	// +optional
	PersistentVolumeClaimAutoscaler *SeedSettingPersistentVolumeClaimAutoscaler `json:"persistentVolumeClaimAutoscaler,omitempty" protobuf:"bytes,10,opt,name=persistentVolumeClaimAutoscaler"`
}

// SeedSettingExcessCapacityReservation keeps capacity free.
type SeedSettingExcessCapacityReservation struct {
	// Whether capacity is kept free. Defaults to true.
	// +optional
	Enabled *bool `json:"enabled,omitempty" protobuf:"bytes,1,opt,name=enabled"`
	// What is kept free. Defaults to 2 CPUs and 6Gi memory.
	// +optional
	Configs []SeedSettingExcessCapacityReservationConfig `json:"configs,omitempty" protobuf:"bytes,2,opt,name=configs"`
}

// SeedSettingExcessCapacityReservationConfig is one reservation.
type SeedSettingExcessCapacityReservationConfig struct {
	// How much.
	Resources corev1.ResourceList `json:"resources" protobuf:"bytes,1,opt,name=resources"`
	// On which nodes.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty" protobuf:"bytes,2,opt,name=nodeSelector"`
	// Taints of nodes that are accepted.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty" protobuf:"bytes,3,opt,name=tolerations"`
}

// SeedSettingScheduling says whether the scheduler uses a seed.
type SeedSettingScheduling struct {
	// Whether it does. Defaults to true.
	Visible bool `json:"visible" protobuf:"bytes,1,opt,name=visible"`
}

// SeedSettingLoadBalancerServices configures services of type LoadBalancer.
type SeedSettingLoadBalancerServices struct {
	// Annotations of the services.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty" protobuf:"bytes,1,opt,name=annotations"`
	// Traffic policy of the services. Defaults to Cluster.
	// +optional
	ExternalTrafficPolicy *corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty" protobuf:"bytes,2,opt,name=externalTrafficPolicy"`
	// Settings per zone.
	// +optional
	Zones []SeedSettingLoadBalancerServicesZones `json:"zones,omitempty" protobuf:"bytes,3,opt,name=zones"`
	// Whether PROXY protocol headers are accepted. Defaults to nil, which is equivalent to not allowing ProxyProtocol.
	// +optional
	ProxyProtocol *LoadBalancerServicesProxyProtocol `json:"proxyProtocol,omitempty" protobuf:"bytes,4,opt,name=proxyProtocol"`
	// Whether there is one load balancer per zone. Not offered: a seed has one gateway for all its zones.
	// +optional
	ZonalIngress *SeedSettingLoadBalancerServicesZonalIngress `json:"zonalIngress,omitempty" protobuf:"bytes,5,opt,name=zonalIngress"`
	// Load balancer class of the services.
	// +optional
	Class *string `json:"class,omitempty" protobuf:"bytes,6,opt,name=class"`
}

// SeedSettingLoadBalancerServicesZones configures services of type LoadBalancer in one zone.
type SeedSettingLoadBalancerServicesZones struct {
	// Name of the zone.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Annotations of the services.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty" protobuf:"bytes,2,opt,name=annotations"`
	// Traffic policy of the services. Defaults to Cluster.
	// +optional
	ExternalTrafficPolicy *corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty" protobuf:"bytes,3,opt,name=externalTrafficPolicy"`
	// Whether PROXY protocol headers are accepted. Defaults to nil, which is equivalent to not allowing ProxyProtocol.
	// +optional
	ProxyProtocol *LoadBalancerServicesProxyProtocol `json:"proxyProtocol,omitempty" protobuf:"bytes,4,opt,name=proxyProtocol"`
}

// LoadBalancerServicesProxyProtocol says whether PROXY protocol headers are accepted.
type LoadBalancerServicesProxyProtocol struct {
	// Whether they are, beside connections without a header. Defaults to false.
	Allowed bool `json:"allowed" protobuf:"bytes,1,opt,name=allowed"`
}

// SeedSettingLoadBalancerServicesZonalIngress says whether there is one load balancer per zone.
type SeedSettingLoadBalancerServicesZonalIngress struct {
	// Whether there is. Defaults to false; true is refused.
	// +optional
	Enabled *bool `json:"enabled,omitempty" protobuf:"bytes,1,opt,name=enabled"`
}

// SeedSettingVerticalPodAutoscaler configures the vertical pod autoscaler of a seed.
type SeedSettingVerticalPodAutoscaler struct {
	// Whether it is installed. Not offered, so it defaults to false.
	Enabled bool `json:"enabled" protobuf:"bytes,1,opt,name=enabled"`
	// Feature gates to turn on or off.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty" protobuf:"bytes,2,opt,name=featureGates"`
	// Most that is recommended for a container. Defaults to nil (no maximum).
	// +optional
	MaxAllowed corev1.ResourceList `json:"maxAllowed,omitempty" protobuf:"bytes,3,opt,name=maxAllowed"`
}

// SeedSettingDependencyWatchdog configures the watchdogs of dependencies.
type SeedSettingDependencyWatchdog struct {
	// Restarts pods that wait for something that is back.
	// +optional
	Weeder *SeedSettingDependencyWatchdogWeeder `json:"weeder,omitempty" protobuf:"bytes,3,opt,name=weeder"`
	// Scales controllers down while nodes cannot be reached.
	// +optional
	Prober *SeedSettingDependencyWatchdogProber `json:"prober,omitempty" protobuf:"bytes,4,opt,name=prober"`
}

// SeedSettingDependencyWatchdogWeeder configures the restarts of waiting pods.
type SeedSettingDependencyWatchdogWeeder struct {
	// Whether it runs. Defaults to true if the whole block is left out.
	Enabled bool `json:"enabled" protobuf:"bytes,1,opt,name=enabled"`
}

// SeedSettingDependencyWatchdogProber configures the scale-down while nodes cannot be reached.
type SeedSettingDependencyWatchdogProber struct {
	// Whether it runs. Defaults to true if the whole block is left out.
	Enabled bool `json:"enabled" protobuf:"bytes,1,opt,name=enabled"`
}

// SeedSettingTopologyAwareRouting says whether traffic stays in its zone.
type SeedSettingTopologyAwareRouting struct {
	// Whether it does. Defaults to false.
	Enabled bool `json:"enabled" protobuf:"bytes,1,opt,name=enabled"`
}

// SeedSettingZoneSelection says how zones for control planes are chosen.
type SeedSettingZoneSelection struct {
	// Whether a wished zone is a must.
	Mode ZoneSelectionMode `json:"mode" protobuf:"bytes,1,opt,name=mode"`
}

// ZoneSelectionMode is whether a wished zone is a must.
type ZoneSelectionMode string

const (
	// ZoneSelectionModePrefer takes the wished zone where possible.
	ZoneSelectionModePrefer ZoneSelectionMode = "Prefer"
	// ZoneSelectionModeEnforce takes no other zone.
	ZoneSelectionModeEnforce ZoneSelectionMode = "Enforce"
)

// SeedSettingPersistentVolumeClaimAutoscaler says whether volumes grow by themselves.
type SeedSettingPersistentVolumeClaimAutoscaler struct {
	// Whether they do. Defaults to false.
	Enabled bool `json:"enabled" protobuf:"bytes,1,opt,name=enabled"`
}

// Ingress says how a seed is reached.
type Ingress struct {
	// Domain of the seed's own endpoints. Immutable.
	Domain string `json:"domain" protobuf:"bytes,1,opt,name=domain"`
	// The ingress controller.
	Controller IngressController `json:"controller" protobuf:"bytes,2,opt,name=controller"`
}

// IngressController names an ingress controller.
type IngressController struct {
	// Kind of the controller: nginx.
	Kind string `json:"kind" protobuf:"bytes,1,opt,name=kind"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
}

// SeedStatus is what was last observed of a Seed.
type SeedStatus struct {
	// The gardenlet that worked last on the object.
	// +optional
	Gardener *Gardener `json:"gardener,omitempty" protobuf:"bytes,1,opt,name=gardener"`
	// Version of the seed's Kubernetes.
	// +optional
	KubernetesVersion *string `json:"kubernetesVersion,omitempty" protobuf:"bytes,2,opt,name=kubernetesVersion"`
	// Health, one entry per type.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,3,opt,name=conditions"`
	// Generation of the specification that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"bytes,4,opt,name=observedGeneration"`
	// Identity that is unique in all landscapes. Immutable once set.
	// +optional
	ClusterIdentity *string `json:"clusterIdentity,omitempty" protobuf:"bytes,5,opt,name=clusterIdentity"`
	// Resources of the seed; "shoots" is how many control planes it can host.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty" protobuf:"bytes,6,opt,name=capacity"`
	// Capacity less what is reserved. Defaults to Capacity.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty" protobuf:"bytes,7,opt,name=allocatable"`
	// When the gardenlet's client certificate expires.
	// +optional
	ClientCertificateExpirationTimestamp *metav1.Time `json:"clientCertificateExpirationTimestamp,omitempty" protobuf:"bytes,8,opt,name=clientCertificateExpirationTimestamp"`
	// What was done last, or is being done.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty" protobuf:"bytes,9,opt,name=lastOperation"`
}
