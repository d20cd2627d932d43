package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name=Type,type=string,JSONPath=`.spec.type`,description="Type of the extension"
// +kubebuilder:printcolumn:name=Region,type=string,JSONPath=`.spec.region`,description="Region in the infrastructure"
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`

// Worker is the machines of a shoot.
type Worker struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	Spec WorkerSpec `json:"spec"`
	// What was observed; written by controllers.
	// +optional
	Status WorkerStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// WorkerList is a list of Worker objects.
type WorkerList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []Worker `json:"items"`
}

// WorkerSpec is what machines are wanted.
type WorkerSpec struct {
	// DefaultSpec holds the fields that all extension kinds share.
	DefaultSpec `json:",inline"`
	// providerStatus of the Infrastructure.
	// +optional
	// +kubebuilder:validation:XPreserveUnknownFields
	// +kubebuilder:pruning:PreserveUnknownFields
	InfrastructureProviderStatus *runtime.RawExtension `json:"infrastructureProviderStatus,omitempty"`
	// Region of the infrastructure.
	Region string `json:"region"`
	// Secret with the credentials.
	SecretRef corev1.SecretReference `json:"secretRef"`
	// Public key for SSH to machines.
	// +optional
	SSHPublicKey []byte `json:"sshPublicKey,omitempty"`
	// Pools of machines.
	// +patchMergeKey=name
	// +patchStrategy=merge
	Pools []WorkerPool `json:"pools" patchStrategy:"merge" patchMergeKey:"name"`
}

// WorkerPool is a pool of machines of one kind.
type WorkerPool struct {
	// Name of the machine type in the infrastructure.
	MachineType string `json:"machineType"`
	// Most machines, over all zones.
	Maximum int32 `json:"maximum"`
	// Machines, or percentage, above the wanted number during an update.
	MaxSurge intstr.IntOrString `json:"maxSurge"`
	// Machines, or percentage, that may be missing during an update.
	MaxUnavailable intstr.IntOrString `json:"maxUnavailable"`
	// Annotations of the nodes.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Labels of the nodes.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Taints of the nodes.
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`
	// Image of the machines.
	// +optional
	MachineImage MachineImage `json:"machineImage,omitempty"`
	// Least machines, over all zones.
	Minimum int32 `json:"minimum"`
	// Name of the pool.
	Name string `json:"name"`
	// Name of the Secret in the shoot with what node-agent applies. A change replaces the machines.
	// +optional
	NodeAgentSecretName *string `json:"nodeAgentSecretName,omitempty"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	// +kubebuilder:validation:XPreserveUnknownFields
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Secret and key with the user data of machines.
	UserDataSecretRef corev1.SecretKeySelector `json:"userDataSecretRef"`
	// Root volume.
	// +optional
	Volume *Volume `json:"volume,omitempty"`
	// Further volumes.
	// +optional
	DataVolumes []DataVolume `json:"dataVolumes,omitempty"`
	// Name of the data volume for the kubelet and the container runtime.
	// +optional
	KubeletDataVolumeName *string `json:"kubeletDataVolumeName,omitempty"`
	// Zones over which machines are spread.
	// +optional
	Zones []string `json:"zones,omitempty"`
	// Settings of the machine-controller-manager for this pool.
	// +optional
	MachineControllerManager *gardencorev1beta1.MachineControllerManagerSettings `json:"machineControllerManager,omitempty"`
	// Version of the kubelets.
	// +optional
	KubernetesVersion *string `json:"kubernetesVersion,omitempty"`
	// Settings of the kubelets.
	// +optional
	KubeletConfig *gardencorev1beta1.KubeletConfig `json:"kubeletConfig,omitempty"`
	// Resources of a node, for the cluster-autoscaler to know before there is one.
	// +optional
	NodeTemplate *NodeTemplate `json:"nodeTemplate,omitempty"`
	// CPU architecture, amd64 or arm64.
	// +optional
	Architecture *string `json:"architecture,omitempty"`
	// Settings of the cluster-autoscaler for this pool.
	// +optional
	ClusterAutoscaler *ClusterAutoscalerOptions `json:"clusterAutoscaler,omitempty"`
	// Priority of this pool for the cluster-autoscaler's priority expander, at least -1.
	// +optional
	Priority *int32 `json:"priority,omitempty"`
	// How machines are updated.
	// +optional
	UpdateStrategy *gardencorev1beta1.MachineUpdateStrategy `json:"updateStrategy,omitempty"`
}

// MachineImage names a machine image.
type MachineImage struct {
	// Name of the image.
	Name string `json:"name"`
	// Version of the image.
	Version string `json:"version"`
}

// Volume is the root volume of a machine.
type Volume struct {
	// Name of the volume.
	// +optional
	Name *string `json:"name,omitempty"`
	// Name of a volume type in the CloudProfile.
	// +optional
	Type *string `json:"type,omitempty"`
	// Size in Gi, such as 50Gi.
	VolumeSize string `json:"size"`
	// Whether the volume is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
}

// DataVolume is a further volume of a machine.
type DataVolume struct {
	// Name of the volume, unique in the pool, at most 15 characters.
	Name string `json:"name"`
	// Name of a volume type in the CloudProfile.
	// +optional
	Type *string `json:"type,omitempty"`
	// Size in Gi, such as 50Gi.
	VolumeSize string `json:"size"`
	// Whether the volume is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
}

// NodeTemplate is what a node of a pool will look like.
type NodeTemplate struct {
	// Resources of the node.
	Capacity corev1.ResourceList `json:"capacity"`
	// Resources of the node that can change without replacing it.
	// +optional
	VirtualCapacity corev1.ResourceList `json:"virtualCapacity,omitempty"`
}

// ClusterAutoscalerOptions configures the cluster-autoscaler for one pool.
type ClusterAutoscalerOptions struct {
	// Share of requested resources below which a node is unneeded, 0 to 1.
	// +optional
	ScaleDownUtilizationThreshold *string `json:"scaleDownUtilizationThreshold,omitempty"`
	// Share of requested GPUs below which a node is unneeded, 0 to 1.
	// +optional
	ScaleDownGpuUtilizationThreshold *string `json:"scaleDownGpuUtilizationThreshold,omitempty"`
	// How long a node has to be unneeded before it is removed.
	// +optional
	ScaleDownUnneededTime *metav1.Duration `json:"scaleDownUnneededTime,omitempty"`
	// How long an unready node has to be unneeded before it is removed.
	// +optional
	ScaleDownUnreadyTime *metav1.Duration `json:"scaleDownUnreadyTime,omitempty"`
	// How long a machine may take to become a node.
	// +optional
	MaxNodeProvisionTime *metav1.Duration `json:"maxNodeProvisionTime,omitempty"`
}

// WorkerStatus is what was last observed of the machines.
type WorkerStatus struct {
	// DefaultStatus holds the fields that all extension kinds share.
	DefaultStatus `json:",inline"`
	// MachineDeployments that were made for the pools.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	MachineDeployments []MachineDeployment `json:"machineDeployments,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// When machineDeployments last changed.
	// +optional
	MachineDeploymentsLastUpdateTime *metav1.Time `json:"machineDeploymentsLastUpdateTime,omitempty"`
	// State of in-place updates.
	// +optional
	InPlaceUpdates *InPlaceUpdatesWorkerStatus `json:"inPlaceUpdates,omitempty"`
}

// MachineDeployment tells the cluster-autoscaler about a MachineDeployment.
type MachineDeployment struct {
	// Name of it.
	Name string `json:"name"`
	// Least machines.
	Minimum int32 `json:"minimum"`
	// Most machines.
	Maximum int32 `json:"maximum"`
	// Priority of this pool for the cluster-autoscaler's priority expander, at least -1.
	// +optional
	Priority *int32 `json:"priority,omitempty"`
	// Most failed machines that are preserved without being asked for.
	// +optional
	AutoPreserveFailedMachineMax *int32 `json:"autoPreserveFailedMachineMax,omitempty"`
}

// InPlaceUpdatesWorkerStatus is the state of in-place updates.
type InPlaceUpdatesWorkerStatus struct {
	// Hash of the settings per pool that in-place updates apply.
	// +optional
	WorkerPoolToHashMap map[string]string `json:"workerPoolToHashMap,omitempty"`
}
