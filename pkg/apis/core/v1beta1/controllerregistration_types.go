package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ControllerRegistration makes an extension known: what it reconciles and how it is installed.
type ControllerRegistration struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// What is wanted.
	// +optional
	Spec ControllerRegistrationSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ControllerRegistrationList is a list of ControllerRegistration objects.
type ControllerRegistrationList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// The objects.
	Items []ControllerRegistration `json:"items" protobuf:"bytes,2,opt,name=items"`
}

// ControllerRegistrationSpec describes an extension.
type ControllerRegistrationSpec struct {
	// What the extension reconciles.
	// +optional
	Resources []ControllerResource `json:"resources,omitempty" protobuf:"bytes,1,opt,name=resources"`
	// How the extension is installed; not by Trellis when left out.
	// +optional
	Deployment *ControllerRegistrationDeployment `json:"deployment,omitempty" protobuf:"bytes,2,opt,name=deployment"`
}

// ControllerResource is a kind and type of extension object that an extension reconciles.
type ControllerResource struct {
	// Kind in extensions.gardener.cloud, such as Infrastructure.
	Kind string `json:"kind" protobuf:"bytes,1,opt,name=kind"`
	// Type, such as local.
	Type string `json:"type" protobuf:"bytes,2,opt,name=type"`
	// How long gardenlet waits for the extension. Defaults to 3m0s when kind is Extension.
	// +optional
	ReconcileTimeout *metav1.Duration `json:"reconcileTimeout,omitempty" protobuf:"bytes,4,opt,name=reconcileTimeout"`
	// Whether this extension, or another of the same kind and type, decides about the type's validity. Immutable.
	// Defaults to true.
	// +optional
	Primary *bool `json:"primary,omitempty" protobuf:"bytes,5,opt,name=primary"`
	// When objects of kind Extension are worked on.
	// +optional
	Lifecycle *ControllerResourceLifecycle `json:"lifecycle,omitempty" protobuf:"bytes,6,opt,name=lifecycle"`
	// Whether the extension serves workerless shoots. Defaults to false.
	// +optional
	WorkerlessSupported *bool `json:"workerlessSupported,omitempty" protobuf:"bytes,7,opt,name=workerlessSupported"`
	// Clusters that get the extension unasked.
	// +optional
	AutoEnable []ClusterType `json:"autoEnable,omitempty" protobuf:"bytes,8,opt,name=autoEnable"`
	// Clusters that can have the extension. Defaults to 'shoot'.
	// +optional
	ClusterCompatibility []ClusterType `json:"clusterCompatibility,omitempty" protobuf:"bytes,9,opt,name=clusterCompatibility"`
	// Whether changes of the endpoints are passed on at any time. Not offered: the endpoint of a control plane is its
	// DNS name.
	// +optional
	ContinuousEndpointUpdate *bool `json:"continuousEndpointUpdate,omitempty" protobuf:"bytes,10,opt,name=continuousEndpointUpdate"`
}

// CompatibleClusters returns the clusters that can have the extension: shoots, unless it says otherwise.
func (r *ControllerResource) CompatibleClusters() []ClusterType {
	if len(r.ClusterCompatibility) == 0 {
		return []ClusterType{ClusterTypeShoot}
	}
	return r.ClusterCompatibility
}

// ClusterType is a kind of cluster.
type ClusterType string

const (
	// ClusterTypeShoot is a shoot.
	ClusterTypeShoot ClusterType = "shoot"
	// ClusterTypeSeed is a seed.
	ClusterTypeSeed ClusterType = "seed"
)

// ControllerResourceLifecycle says when an Extension object is worked on. All default to AfterKubeAPIServer for
// reconcile and BeforeKubeAPIServer for delete and migrate.
type ControllerResourceLifecycle struct {
	// When it is reconciled.
	// +optional
	Reconcile *ControllerResourceLifecycleStrategy `json:"reconcile,omitempty" protobuf:"bytes,1,opt,name=reconcile"`
	// When it is deleted.
	// +optional
	Delete *ControllerResourceLifecycleStrategy `json:"delete,omitempty" protobuf:"bytes,2,opt,name=delete"`
	// When it is migrated.
	// +optional
	Migrate *ControllerResourceLifecycleStrategy `json:"migrate,omitempty" protobuf:"bytes,3,opt,name=migrate"`
}

// ControllerResourceLifecycleStrategy is a point in the flow of a shoot.
type ControllerResourceLifecycleStrategy string

const (
	// BeforeKubeAPIServer is before the kube-apiserver.
	BeforeKubeAPIServer ControllerResourceLifecycleStrategy = "BeforeKubeAPIServer"
	// AfterKubeAPIServer is after the kube-apiserver.
	AfterKubeAPIServer ControllerResourceLifecycleStrategy = "AfterKubeAPIServer"
	// AfterWorker is after the workers.
	AfterWorker ControllerResourceLifecycleStrategy = "AfterWorker"
)

// ControllerRegistrationDeployment says how an extension is installed.
type ControllerRegistrationDeployment struct {
	// In which seeds. Defaults to 'OnDemand'.
	// +optional
	Policy *ControllerDeploymentPolicy `json:"policy,omitempty" protobuf:"bytes,3,opt,name=policy"`
	// Narrows the seeds by their labels; not with primary resources.
	// +optional
	SeedSelector *metav1.LabelSelector `json:"seedSelector,omitempty" protobuf:"bytes,4,opt,name=seedSelector"`
	// ControllerDeployments, at most one.
	// +optional
	DeploymentRefs []DeploymentRef `json:"deploymentRefs,omitempty" protobuf:"bytes,5,opt,name=deploymentRefs"`
}

// ControllerDeploymentPolicy is in which seeds an extension is installed.
type ControllerDeploymentPolicy string

const (
	// ControllerDeploymentPolicyOnDemand is where a shoot or the seed needs it.
	ControllerDeploymentPolicyOnDemand ControllerDeploymentPolicy = "OnDemand"
	// ControllerDeploymentPolicyAlways is everywhere.
	ControllerDeploymentPolicyAlways ControllerDeploymentPolicy = "Always"
	// ControllerDeploymentPolicyAlwaysExceptNoShoots is where there are shoots.
	ControllerDeploymentPolicyAlwaysExceptNoShoots ControllerDeploymentPolicy = "AlwaysExceptNoShoots"
)

// DeploymentRef refers to a ControllerDeployment.
type DeploymentRef struct {
	// Name of it.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}
