package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=osc,scope=Namespaced
// +kubebuilder:printcolumn:name=Type,type=string,JSONPath=`.spec.type`,description="Type of the extension"
// +kubebuilder:printcolumn:name=Purpose,type=string,JSONPath=`.spec.purpose`,description="provision or reconcile"
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`

// OperatingSystemConfig is what a machine runs besides Kubernetes pods: systemd units and files.
type OperatingSystemConfig struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	Spec OperatingSystemConfigSpec `json:"spec"`
	// What was observed; written by controllers.
	// +optional
	Status OperatingSystemConfigStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// OperatingSystemConfigList is a list of OperatingSystemConfig objects.
type OperatingSystemConfigList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []OperatingSystemConfig `json:"items"`
}

// OperatingSystemConfigSpec is what a machine is to run.
type OperatingSystemConfigSpec struct {
	// DefaultSpec holds the fields that all extension kinds share.
	DefaultSpec `json:",inline"`
	// Settings of the container runtime.
	// +optional
	CRIConfig *CRIConfig `json:"criConfig,omitempty"`
	// First boot, or later reconciliation. Immutable.
	Purpose OperatingSystemConfigPurpose `json:"purpose"`
	// systemd units.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	Units []Unit `json:"units,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Files.
	// +optional
	// +patchMergeKey=path
	// +patchStrategy=merge
	Files []File `json:"files,omitempty" patchStrategy:"merge" patchMergeKey:"path"`
	// What in-place updates change.
	// +optional
	InPlaceUpdates *InPlaceUpdates `json:"inPlaceUpdates,omitempty"`
}

// OperatingSystemConfigPurpose is when a configuration is applied.
type OperatingSystemConfigPurpose string

const (
	// OperatingSystemConfigPurposeProvision is at the first boot, as user data.
	OperatingSystemConfigPurposeProvision OperatingSystemConfigPurpose = "provision"
	// OperatingSystemConfigPurposeReconcile is later, by node-agent.
	OperatingSystemConfigPurposeReconcile OperatingSystemConfigPurpose = "reconcile"
)

// CRIConfig configures the container runtime.
type CRIConfig struct {
	// Name of the runtime.
	Name CRIName `json:"name"`
	// How cgroups are managed; the same as the kubelet's.
	// +optional
	CgroupDriver *CgroupDriverName `json:"cgroupDriver,omitempty"`
	// Settings of containerd.
	// +optional
	Containerd *ContainerdConfig `json:"containerd,omitempty"`
}

// CRIName is the name of a container runtime.
type CRIName string

const (
	// CRINameContainerD is containerd.
	CRINameContainerD CRIName = "containerd"
)

// CgroupDriverName is how cgroups are managed.
type CgroupDriverName string

const (
	// CgroupDriverCgroupfs writes to the file system.
	CgroupDriverCgroupfs CgroupDriverName = "cgroupfs"
	// CgroupDriverSystemd asks systemd.
	CgroupDriverSystemd CgroupDriverName = "systemd"
)

// ContainerdConfig configures containerd.
type ContainerdConfig struct {
	// Registries and their mirrors.
	// +optional
	Registries []RegistryConfig `json:"registries,omitempty"`
	// Image that holds a pod's namespaces.
	SandboxImage string `json:"sandboxImage"`
	// Changes of plugin settings.
	// +optional
	Plugins []PluginConfig `json:"plugins,omitempty"`
}

// RegistryConfig says how a registry is reached.
type RegistryConfig struct {
	// Name of the registry in image names.
	Upstream string `json:"upstream"`
	// URL of the registry itself.
	// +optional
	Server *string `json:"server,omitempty"`
	// Mirrors, tried in order.
	// +optional
	Hosts []RegistryHost `json:"hosts,omitempty"`
	// Whether to wait until a mirror answers.
	// +optional
	ReadinessProbe *bool `json:"readinessProbe,omitempty"`
}

// RegistryHost is a mirror of a registry.
type RegistryHost struct {
	// URL of the mirror.
	URL string `json:"url"`
	// What the mirror can do. Defaults to pull and resolve.
	// +optional
	Capabilities []RegistryCapability `json:"capabilities,omitempty"`
	// Files with certificates to trust.
	// +optional
	CACerts []string `json:"caCerts,omitempty"`
	// Whether the URL contains the API's path already.
	// +optional
	OverridePath *bool `json:"overridePath,omitempty"`
}

// RegistryCapability is what a mirror can do.
type RegistryCapability string

const (
	// PullCapability serves content by digest.
	PullCapability RegistryCapability = "pull"
	// ResolveCapability turns tags into digests.
	ResolveCapability RegistryCapability = "resolve"
	// PushCapability takes content.
	PushCapability RegistryCapability = "push"
)

// PluginConfig changes a setting of containerd's plugins.
type PluginConfig struct {
	// Whether to add or remove. Defaults to add.
	// +optional
	Op *PluginPathOperation `json:"op,omitempty"`
	// Path in the configuration.
	Path []string `json:"path"`
	// Values to add.
	// +optional
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
}

// PluginPathOperation is whether a setting is added or removed.
type PluginPathOperation string

const (
	// AddPluginPathOperation adds values.
	AddPluginPathOperation PluginPathOperation = "add"
	// RemovePluginPathOperation removes the path.
	RemovePluginPathOperation PluginPathOperation = "remove"
)

// Unit is a systemd unit.
type Unit struct {
	// Name with suffix, such as kubelet.service.
	Name string `json:"name"`
	// What to do with the unit. Defaults to restart.
	// +optional
	Command *UnitCommand `json:"command,omitempty"`
	// Whether the unit starts at boot. Defaults to true.
	// +optional
	Enable *bool `json:"enable,omitempty"`
	// The unit file; left out to change a unit that is there already.
	// +optional
	Content *string `json:"content,omitempty"`
	// Files that add to the unit.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	DropIns []DropIn `json:"dropIns,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Files of this configuration whose change restarts the unit.
	// +optional
	FilePaths []string `json:"filePaths,omitempty"`
}

// UnitCommand is what to do with a unit.
type UnitCommand string

const (
	// CommandStart starts it.
	CommandStart UnitCommand = "start"
	// CommandRestart restarts it.
	CommandRestart UnitCommand = "restart"
	// CommandStop stops it.
	CommandStop UnitCommand = "stop"
)

// DropIn adds to a unit.
type DropIn struct {
	// Name of the file.
	Name string `json:"name"`
	// The file.
	Content string `json:"content"`
}

// File is a file on the machine.
type File struct {
	// Absolute path.
	Path string `json:"path"`
	// Mode. Defaults to 0644.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Permissions *int32 `json:"permissions,omitempty"`
	// The content.
	Content FileContent `json:"content"`
	// Host name of the machine that gets the file, instead of one of the same path for all; all when left out.
	// +optional
	HostName *string `json:"hostName,omitempty"`
}

// FileContent is the content of a file; exactly one source is set.
type FileContent struct {
	// Key of a Secret beside this object.
	// +optional
	SecretRef *FileContentSecretRef `json:"secretRef,omitempty"`
	// The content itself.
	// +optional
	Inline *FileContentInline `json:"inline,omitempty"`
	// Whether the content is passed on without base64 in user data.
	// +optional
	TransmitUnencoded *bool `json:"transmitUnencoded,omitempty"`
	// File in an OCI image.
	// +optional
	ImageRef *FileContentImageRef `json:"imageRef,omitempty"`
}

// FileContentSecretRef refers to a key of a Secret.
type FileContentSecretRef struct {
	// Name of the Secret.
	Name string `json:"name"`
	// Key in its data.
	DataKey string `json:"dataKey"`
}

// FileContentInline is content itself.
type FileContentInline struct {
	// Encoding of data: empty for none, b64, gzip.
	Encoding string `json:"encoding"`
	// The content.
	Data string `json:"data"`
}

// FileContentImageRef refers to a file in an OCI image.
type FileContentImageRef struct {
	// Image with registry and tag or digest.
	Image string `json:"image"`
	// Absolute path in the image.
	FilePathInImage string `json:"filePathInImage"`
}

// InPlaceUpdates says what in-place updates change.
type InPlaceUpdates struct {
	// Version of the operating system.
	OperatingSystemVersion string `json:"operatingSystemVersion"`
	// Version of the kubelet.
	Kubelet string `json:"kubelet"`
	// Rotations to apply.
	// +optional
	CredentialsRotation *CredentialsRotation `json:"credentialsRotation,omitempty"`
}

// CredentialsRotation tells when rotations began.
type CredentialsRotation struct {
	// Of the certificate authorities.
	// +optional
	CertificateAuthorities *CARotation `json:"certificateAuthorities,omitempty"`
	// Of the key that signs service account tokens.
	// +optional
	ServiceAccountKey *ServiceAccountKeyRotation `json:"serviceAccountKey,omitempty"`
}

// CARotation tells when the rotation of certificate authorities began.
type CARotation struct {
	// When the last rotation began.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
}

// ServiceAccountKeyRotation tells when the rotation of the key for service account tokens began.
type ServiceAccountKeyRotation struct {
	// When the last rotation began.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
}

// OperatingSystemConfigStatus is what the extension adds.
type OperatingSystemConfigStatus struct {
	// DefaultStatus holds the fields that all extension kinds share.
	DefaultStatus `json:",inline"`
	// Units that the extension adds.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	ExtensionUnits []Unit `json:"extensionUnits,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Files that the extension adds.
	// +optional
	// +patchMergeKey=path
	// +patchStrategy=merge
	ExtensionFiles []File `json:"extensionFiles,omitempty" patchStrategy:"merge" patchMergeKey:"path"`
	// User data, for purpose provision.
	// +optional
	CloudConfig *CloudConfig `json:"cloudConfig,omitempty"`
	// How to update the operating system in place.
	// +optional
	InPlaceUpdates *InPlaceUpdatesStatus `json:"inPlaceUpdates,omitempty"`
}

// CloudConfig refers to user data.
type CloudConfig struct {
	// Secret with the user data under key cloud_config.
	SecretRef corev1.SecretReference `json:"secretRef"`
}

// InPlaceUpdatesStatus says how to update in place.
type InPlaceUpdatesStatus struct {
	// Command that updates the operating system.
	// +optional
	OSUpdate *OSUpdate `json:"osUpdate,omitempty"`
}

// OSUpdate is a command that updates the operating system.
type OSUpdate struct {
	// Program.
	Command string `json:"command"`
	// Arguments.
	// +optional
	Args []string `json:"args,omitempty"`
}
