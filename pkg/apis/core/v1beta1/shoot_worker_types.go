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
	Type string `json:"type"`
	// Settings for the ControlPlane extension of the provider.
	// +optional
	ControlPlaneConfig *runtime.RawExtension `json:"controlPlaneConfig,omitempty"`
	// Settings for the Infrastructure extension of the provider.
	// +optional
	InfrastructureConfig *runtime.RawExtension `json:"infrastructureConfig,omitempty"`
	// Worker pools. A cluster without any is workerless: only its API server is of use.
	// +optional
	Workers []Worker `json:"workers,omitempty"`
	// Settings for all worker pools.
	// +optional
	WorkersSettings *WorkersSettings `json:"workersSettings,omitempty"`
}

// Worker is a pool of machines of one kind.
type Worker struct {
	// Annotations of the nodes.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// PEM certificates that machines trust.
	// +optional
	CABundle *string `json:"caBundle,omitempty"`
	// Container runtime. Defaults to containerd.
	// +optional
	CRI *CRI `json:"cri,omitempty"`
	// Kubernetes version and kubelet settings of this pool, where they differ from the cluster's.
	// +optional
	Kubernetes *WorkerKubernetes `json:"kubernetes,omitempty"`
	// Labels of the nodes.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Name of the pool, at most 15 characters.
	Name string `json:"name"`
	// Machine type and image.
	Machine Machine `json:"machine"`
	// Most machines.
	Maximum int32 `json:"maximum"`
	// Least machines.
	Minimum int32 `json:"minimum"`
	// Machines, or percentage, above the wanted number during an update. Defaults to 1, or 0 for in-place updates.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// Machines, or percentage, that may be missing during an update. Defaults to 0, or 1 for in-place updates.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Taints of the nodes.
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`
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
	// Whether system components may run here.
	// +optional
	SystemComponents *WorkerSystemComponents `json:"systemComponents,omitempty"`
	// Settings of the machine-controller-manager for this pool.
	// +optional
	MachineControllerManager *MachineControllerManagerSettings `json:"machineControllerManager,omitempty"`
	// Kernel settings of the machines.
	// +optional
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// Settings of the cluster-autoscaler for this pool.
	// +optional
	ClusterAutoscaler *ClusterAutoscalerOptions `json:"clusterAutoscaler,omitempty"`
	// Priority of this pool for the cluster-autoscaler's priority expander, at least -1.
	// +optional
	Priority *int32 `json:"priority,omitempty"`
	// How machines are updated. Defaults to AutoRollingUpdate.
	// +optional
	UpdateStrategy *MachineUpdateStrategy `json:"updateStrategy,omitempty"`
	// Set when the control plane runs on this pool, in a self-hosted cluster.
	// +optional
	ControlPlane *WorkerControlPlane `json:"controlPlane,omitempty"`
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
	Name CRIName `json:"name"`
	// Further runtimes to install beside it.
	// +optional
	ContainerRuntimes []ContainerRuntime `json:"containerRuntimes,omitempty"`
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
	Type string `json:"type"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// WorkerKubernetes holds Kubernetes settings of one worker pool.
type WorkerKubernetes struct {
	// Replaces the cluster's kubelet settings.
	// +optional
	Kubelet *KubeletConfig `json:"kubelet,omitempty"`
	// Version of the kubelets; not newer than the control plane's, at most three minor versions older.
	// +optional
	Version *string `json:"version,omitempty"`
}

// Machine is a machine type with an image.
type Machine struct {
	// Name of a machine type in the CloudProfile.
	Type string `json:"type"`
	// Image of the machine. Defaults to the newest version of the first fitting image in the CloudProfile.
	// +optional
	Image *ShootMachineImage `json:"image,omitempty"`
	// CPU architecture, amd64 or arm64.
	// +optional
	Architecture *string `json:"architecture,omitempty"`
}

// ShootMachineImage names a machine image.
type ShootMachineImage struct {
	// Name of a machine image in the CloudProfile.
	Name string `json:"name"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Version of the image. Defaults to the newest supported version in the CloudProfile.
	// +optional
	Version *string `json:"version,omitempty"`
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

// WorkerSystemComponents says whether system components may run on a pool.
type WorkerSystemComponents struct {
	// Whether they may. Defaults to true.
	Allow bool `json:"allow"`
}

// MachineControllerManagerSettings configures the machine-controller-manager for one pool.
type MachineControllerManagerSettings struct {
	// How long a machine is drained before it is deleted by force.
	// +optional
	MachineDrainTimeout *metav1.Duration `json:"machineDrainTimeout,omitempty"`
	// How long a machine may be unhealthy before it is replaced.
	// +optional
	MachineHealthTimeout *metav1.Duration `json:"machineHealthTimeout,omitempty"`
	// How long a machine may take to become a node.
	// +optional
	MachineCreationTimeout *metav1.Duration `json:"machineCreationTimeout,omitempty"`
	// How often evictions are tried before pods are deleted.
	// +optional
	MaxEvictRetries *int32 `json:"maxEvictRetries,omitempty"`
	// Conditions of a node that make its machine unhealthy.
	// +optional
	NodeConditions []string `json:"nodeConditions,omitempty"`
	// How long an in-place update may take.
	// +optional
	InPlaceUpdateTimeout *metav1.Duration `json:"inPlaceUpdateTimeout,omitempty"`
	// Whether unhealthy machines are kept.
	// +optional
	DisableHealthTimeout *bool `json:"disableHealthTimeout,omitempty"`
	// How long a preserved machine is kept.
	// +optional
	MachinePreserveTimeout *metav1.Duration `json:"machinePreserveTimeout,omitempty"`
	// Most failed machines that are preserved without being asked for.
	// +optional
	AutoPreserveFailedMachineMax *int32 `json:"autoPreserveFailedMachineMax,omitempty"`
}

// ClusterAutoscalerOptions configures the cluster-autoscaler for one pool.
type ClusterAutoscalerOptions struct {
	// Share of requested resources below which a node is unneeded, 0 to 1.
	// +optional
	ScaleDownUtilizationThreshold *float64 `json:"scaleDownUtilizationThreshold,omitempty"`
	// Share of requested GPUs below which a node is unneeded, 0 to 1.
	// +optional
	ScaleDownGpuUtilizationThreshold *float64 `json:"scaleDownGpuUtilizationThreshold,omitempty"`
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

// WorkerControlPlane describes the control plane of a self-hosted cluster.
type WorkerControlPlane struct {
	// Where the etcds of a self-hosted cluster are backed up.
	// +optional
	Backup *Backup `json:"backup,omitempty"`
	// How the API server of a self-hosted cluster is reached.
	// +optional
	Exposure *Exposure `json:"exposure,omitempty"`
}

// Exposure says how an API server is reached; exactly one field is set.
type Exposure struct {
	// Through an extension.
	// +optional
	Extension *ExtensionExposure `json:"extension,omitempty"`
	// Through DNS records only.
	// +optional
	DNS *DNSExposure `json:"dns,omitempty"`
}

// ExtensionExposure exposes an API server through an extension.
type ExtensionExposure struct {
	// Type of the extension. Defaults to the provider's type.
	// +optional
	Type *string `json:"type,omitempty"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// WorkersSettings configures all worker pools.
type WorkersSettings struct {
	// Whether machines can be reached by SSH.
	// +optional
	SSHAccess *SSHAccess `json:"sshAccess,omitempty"`
}

// SSHAccess says whether machines can be reached by SSH.
type SSHAccess struct {
	// Whether they can. Defaults to true.
	Enabled bool `json:"enabled"`
}

// DNSExposure exposes an API server through DNS records only. It has no settings.
type DNSExposure struct{}
