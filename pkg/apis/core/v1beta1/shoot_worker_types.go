package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Provider names the infrastructure and its machines.
type Provider struct {
	// Type of the infrastructure, as in the CloudProfile. Immutable.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// Settings for the ControlPlane extension of the provider.
	// +optional
	ControlPlaneConfig *runtime.RawExtension `json:"controlPlaneConfig,omitempty" protobuf:"bytes,2,opt,name=controlPlaneConfig"`
	// Settings for the Infrastructure extension of the provider.
	// +optional
	InfrastructureConfig *runtime.RawExtension `json:"infrastructureConfig,omitempty" protobuf:"bytes,3,opt,name=infrastructureConfig"`
	// Worker pools. A cluster without any is workerless: only its API server is of use.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	Workers []Worker `json:"workers,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,4,opt,name=workers"`
	// Settings for all worker pools.
	// +optional
	WorkersSettings *WorkersSettings `json:"workersSettings,omitempty" protobuf:"bytes,5,opt,name=workersSettings"`
}

// Worker is a pool of machines of one kind.
type Worker struct {
	// Annotations of the nodes.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty" protobuf:"bytes,1,opt,name=annotations"`
	// PEM certificates that machines trust.
	// +optional
	CABundle *string `json:"caBundle,omitempty" protobuf:"bytes,2,opt,name=caBundle"`
	// Container runtime. Defaults to containerd.
	// +optional
	CRI *CRI `json:"cri,omitempty" protobuf:"bytes,3,opt,name=cri"`
	// Kubernetes version and kubelet settings of this pool, where they differ from the cluster's.
	// +optional
	Kubernetes *WorkerKubernetes `json:"kubernetes,omitempty" protobuf:"bytes,4,opt,name=kubernetes"`
	// Labels of the nodes.
	// +optional
	Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,5,opt,name=labels"`
	// Name of the pool, at most 15 characters.
	Name string `json:"name" protobuf:"bytes,6,opt,name=name"`
	// Machine type and image.
	Machine Machine `json:"machine" protobuf:"bytes,7,opt,name=machine"`
	// Most machines.
	Maximum int32 `json:"maximum" protobuf:"bytes,8,opt,name=maximum"`
	// Least machines.
	Minimum int32 `json:"minimum" protobuf:"bytes,9,opt,name=minimum"`
	// Machines, or percentage, above the wanted number during an update. Defaults to 1, or 0 for in-place updates.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty" protobuf:"bytes,10,opt,name=maxSurge"`
	// Machines, or percentage, that may be missing during an update. Defaults to 0, or 1 for in-place updates.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty" protobuf:"bytes,11,opt,name=maxUnavailable"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,12,opt,name=providerConfig"`
	// Taints of the nodes.
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty" protobuf:"bytes,13,opt,name=taints"`
	// Root volume.
	// +optional
	Volume *Volume `json:"volume,omitempty" protobuf:"bytes,14,opt,name=volume"`
	// Further volumes.
	// +optional
	DataVolumes []DataVolume `json:"dataVolumes,omitempty" protobuf:"bytes,15,opt,name=dataVolumes"`
	// Name of the data volume for the kubelet and the container runtime.
	// +optional
	KubeletDataVolumeName *string `json:"kubeletDataVolumeName,omitempty" protobuf:"bytes,16,opt,name=kubeletDataVolumeName"`
	// Zones over which machines are spread.
	// +optional
	Zones []string `json:"zones,omitempty" protobuf:"bytes,17,opt,name=zones"`
	// Whether system components may run here.
	// +optional
	SystemComponents *WorkerSystemComponents `json:"systemComponents,omitempty" protobuf:"bytes,18,opt,name=systemComponents"`
	// Settings of the machine-controller-manager for this pool.
	// +optional
	MachineControllerManager *MachineControllerManagerSettings `json:"machineControllerManager,omitempty" protobuf:"bytes,19,opt,name=machineControllerManager"`
	// Kernel settings of the machines.
	// +optional
	Sysctls map[string]string `json:"sysctls,omitempty" protobuf:"bytes,20,opt,name=sysctls"`
	// Settings of the cluster-autoscaler for this pool.
	// +optional
	ClusterAutoscaler *ClusterAutoscalerOptions `json:"clusterAutoscaler,omitempty" protobuf:"bytes,21,opt,name=clusterAutoscaler"`
	// Priority of this pool for the cluster-autoscaler's priority expander, at least -1.
	// +optional
	Priority *int32 `json:"priority,omitempty" protobuf:"bytes,22,opt,name=priority"`
	// How machines are updated. Defaults to AutoRollingUpdate.
	// +optional
	UpdateStrategy *MachineUpdateStrategy `json:"updateStrategy,omitempty" protobuf:"bytes,23,opt,name=updateStrategy"`
	// Set when the control plane runs on this pool, in a self-hosted cluster.
	// +optional
	ControlPlane *WorkerControlPlane `json:"controlPlane,omitempty" protobuf:"bytes,24,opt,name=controlPlane"`
}

// MachineUpdateStrategy is how machines of a pool are updated.
type MachineUpdateStrategy string

const (
	// AutoRollingUpdate replaces machines one after another.
	AutoRollingUpdate MachineUpdateStrategy = "AutoRollingUpdate"
	// AutoInPlaceUpdate updates machines one after another without replacing them.
	AutoInPlaceUpdate MachineUpdateStrategy = "AutoInPlaceUpdate"
	// ManualInPlaceUpdate updates machines that the owner selects without replacing them.
	ManualInPlaceUpdate MachineUpdateStrategy = "ManualInPlaceUpdate"
)

// CRI configures the container runtime interface.
type CRI struct {
	// Name of the runtime.
	Name CRIName `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Further runtimes to install beside it.
	// +optional
	ContainerRuntimes []ContainerRuntime `json:"containerRuntimes,omitempty" protobuf:"bytes,2,opt,name=containerRuntimes"`
}

// CRIName is the name of a container runtime.
type CRIName string

const (
	// CRINameContainerD is containerd.
	CRINameContainerD CRIName = "containerd"
)

// ContainerRuntime is a runtime that pods can choose by RuntimeClass.
type ContainerRuntime struct {
	// Type of the ContainerRuntime extension.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
}

// WorkerKubernetes holds Kubernetes settings of one worker pool.
type WorkerKubernetes struct {
	// Replaces the cluster's kubelet settings.
	// +optional
	Kubelet *KubeletConfig `json:"kubelet,omitempty" protobuf:"bytes,1,opt,name=kubelet"`
	// Version of the kubelets; not newer than the control plane's, at most three minor versions older.
	// +optional
	Version *string `json:"version,omitempty" protobuf:"bytes,2,opt,name=version"`
}

// Machine is a machine type with an image.
type Machine struct {
	// Name of a machine type in the CloudProfile.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// Image of the machine. Defaults to the newest version of the first fitting image in the CloudProfile.
	// +optional
	Image *ShootMachineImage `json:"image,omitempty" protobuf:"bytes,2,opt,name=image"`
	// CPU architecture, amd64 or arm64.
	// +optional
	Architecture *string `json:"architecture,omitempty" protobuf:"bytes,3,opt,name=architecture"`
}

// ShootMachineImage names a machine image.
type ShootMachineImage struct {
	// Name of a machine image in the CloudProfile.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
	// Version of the image. Defaults to the newest supported version in the CloudProfile.
	// +optional
	Version *string `json:"version,omitempty" protobuf:"bytes,3,opt,name=version"`
}

// Volume is the root volume of a machine.
type Volume struct {
	// Name of the volume.
	// +optional
	Name *string `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"`
	// Name of a volume type in the CloudProfile.
	// +optional
	Type *string `json:"type,omitempty" protobuf:"bytes,2,opt,name=type"`
	// Size in Gi, such as 50Gi.
	VolumeSize string `json:"size" protobuf:"bytes,3,opt,name=size"`
	// Whether the volume is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty" protobuf:"bytes,4,opt,name=encrypted"`
}

// DataVolume is a further volume of a machine.
type DataVolume struct {
	// Name of the volume, unique in the pool, at most 15 characters.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Name of a volume type in the CloudProfile.
	// +optional
	Type *string `json:"type,omitempty" protobuf:"bytes,2,opt,name=type"`
	// Size in Gi, such as 50Gi.
	VolumeSize string `json:"size" protobuf:"bytes,3,opt,name=size"`
	// Whether the volume is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty" protobuf:"bytes,4,opt,name=encrypted"`
}

// WorkerSystemComponents says whether system components may run on a pool.
type WorkerSystemComponents struct {
	// Whether they may. Defaults to true.
	Allow bool `json:"allow" protobuf:"bytes,1,opt,name=allow"`
}

// MachineControllerManagerSettings configures the machine-controller-manager for one pool.
type MachineControllerManagerSettings struct {
	// How long a machine is drained before it is deleted by force.
	// +optional
	MachineDrainTimeout *metav1.Duration `json:"machineDrainTimeout,omitempty" protobuf:"bytes,1,opt,name=machineDrainTimeout"`
	// How long a machine may be unhealthy before it is replaced.
	// +optional
	MachineHealthTimeout *metav1.Duration `json:"machineHealthTimeout,omitempty" protobuf:"bytes,2,opt,name=machineHealthTimeout"`
	// How long a machine may take to become a node.
	// +optional
	MachineCreationTimeout *metav1.Duration `json:"machineCreationTimeout,omitempty" protobuf:"bytes,3,opt,name=machineCreationTimeout"`
	// How often evictions are tried before pods are deleted.
	// +optional
	MaxEvictRetries *int32 `json:"maxEvictRetries,omitempty" protobuf:"bytes,4,opt,name=maxEvictRetries"`
	// Conditions of a node that make its machine unhealthy.
	// +optional
	NodeConditions []string `json:"nodeConditions,omitempty" protobuf:"bytes,5,opt,name=nodeConditions"`
	// How long an in-place update may take.
	// +optional
	InPlaceUpdateTimeout *metav1.Duration `json:"inPlaceUpdateTimeout,omitempty" protobuf:"bytes,6,opt,name=inPlaceUpdateTimeout"`
	// Whether unhealthy machines are kept.
	// +optional
	DisableHealthTimeout *bool `json:"disableHealthTimeout,omitempty" protobuf:"bytes,7,opt,name=disableHealthTimeout"`
	// How long a preserved machine is kept.
	// +optional
	MachinePreserveTimeout *metav1.Duration `json:"machinePreserveTimeout,omitempty" protobuf:"bytes,8,opt,name=machinePreserveTimeout"`
	// Most failed machines that are preserved without being asked for.
	// +optional
	AutoPreserveFailedMachineMax *int32 `json:"autoPreserveFailedMachineMax,omitempty" protobuf:"bytes,9,opt,name=autoPreserveFailedMachineMax"`
}

// ClusterAutoscalerOptions configures the cluster-autoscaler for one pool.
type ClusterAutoscalerOptions struct {
	// Share of requested resources below which a node is unneeded, 0 to 1.
	// +optional
	ScaleDownUtilizationThreshold *float64 `json:"scaleDownUtilizationThreshold,omitempty" protobuf:"bytes,1,opt,name=scaleDownUtilizationThreshold"`
	// Share of requested GPUs below which a node is unneeded, 0 to 1.
	// +optional
	ScaleDownGpuUtilizationThreshold *float64 `json:"scaleDownGpuUtilizationThreshold,omitempty" protobuf:"bytes,2,opt,name=scaleDownGpuUtilizationThreshold"`
	// How long a node has to be unneeded before it is removed.
	// +optional
	ScaleDownUnneededTime *metav1.Duration `json:"scaleDownUnneededTime,omitempty" protobuf:"bytes,3,opt,name=scaleDownUnneededTime"`
	// How long an unready node has to be unneeded before it is removed.
	// +optional
	ScaleDownUnreadyTime *metav1.Duration `json:"scaleDownUnreadyTime,omitempty" protobuf:"bytes,4,opt,name=scaleDownUnreadyTime"`
	// How long a machine may take to become a node.
	// +optional
	MaxNodeProvisionTime *metav1.Duration `json:"maxNodeProvisionTime,omitempty" protobuf:"bytes,5,opt,name=maxNodeProvisionTime"`
}

// WorkerControlPlane describes the control plane of a self-hosted cluster.
type WorkerControlPlane struct {
	// Where the etcds of a self-hosted cluster are backed up.
	// +optional
	Backup *Backup `json:"backup,omitempty" protobuf:"bytes,1,opt,name=backup"`
	// How the API server of a self-hosted cluster is reached.
	// +optional
	Exposure *Exposure `json:"exposure,omitempty" protobuf:"bytes,2,opt,name=exposure"`
}

// Exposure says how an API server is reached; exactly one field is set.
type Exposure struct {
	// Through an extension.
	// +optional
	Extension *ExtensionExposure `json:"extension,omitempty" protobuf:"bytes,1,opt,name=extension"`
	// Through DNS records only.
	// +optional
	DNS *DNSExposure `json:"dns,omitempty" protobuf:"bytes,2,opt,name=dns"`
}

// ExtensionExposure exposes an API server through an extension.
type ExtensionExposure struct {
	// Type of the extension. Defaults to the provider's type.
	// +optional
	Type *string `json:"type,omitempty" protobuf:"bytes,1,opt,name=type"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
}

// WorkersSettings configures all worker pools.
type WorkersSettings struct {
	// Whether machines can be reached by SSH.
	// +optional
	SSHAccess *SSHAccess `json:"sshAccess,omitempty" protobuf:"bytes,1,opt,name=sshAccess"`
}

// SSHAccess says whether machines can be reached by SSH.
type SSHAccess struct {
	// Whether they can. Defaults to true.
	Enabled bool `json:"enabled" protobuf:"bytes,1,opt,name=enabled"`
}

// DNSExposure exposes an API server through DNS records only. It has no settings.
type DNSExposure struct{}
