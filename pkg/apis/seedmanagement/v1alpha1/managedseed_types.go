package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedSeed makes a shoot of the namespace garden a seed: a gardenlet is installed into it, which registers it. The
// Seed has the name of the ManagedSeed.
type ManagedSeed struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// What is wanted.
	// +optional
	Spec ManagedSeedSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// What was observed; written by controllers.
	// +optional
	Status ManagedSeedStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedSeedList is a list of ManagedSeed objects.
type ManagedSeedList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// The objects.
	Items []ManagedSeed `json:"items" protobuf:"bytes,2,opt,name=items"`
}

// ManagedSeedTemplate is what the ManagedSeeds of a set are made from.
type ManagedSeedTemplate struct {
	// Labels and annotations of the ManagedSeeds.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// What is wanted; without a shoot.
	// +optional
	Spec ManagedSeedSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
}

// ManagedSeedSpec is which shoot becomes a seed, and with which gardenlet.
type ManagedSeedSpec struct {
	// The shoot. Required except in templates. Immutable.
	// +optional
	Shoot *Shoot `json:"shoot,omitempty" protobuf:"bytes,1,opt,name=shoot"`
	// The gardenlet.
	Gardenlet GardenletConfig `json:"gardenlet" protobuf:"bytes,3,opt,name=gardenlet"`
}

// Shoot names a Shoot of the same namespace.
type Shoot struct {
	// Name of the Shoot.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

// GardenletConfig is how the gardenlet of a ManagedSeed is deployed and configured.
type GardenletConfig struct {
	// How it is deployed.
	// +optional
	Deployment *GardenletDeployment `json:"deployment,omitempty" protobuf:"bytes,1,opt,name=deployment"`
	// Its GardenletConfiguration (gardenlet.config.gardener.cloud/v1alpha1). What its seedConfig leaves out is taken
	// from the shoot. The name of the seed must not be given: it is that of the ManagedSeed.
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty" protobuf:"bytes,2,opt,name=config"`
	// How it gets its first access to the garden: BootstrapToken, ServiceAccount or None. With None, the configuration
	// must hold gardenClientConnection.kubeconfig, the path of a file that is mounted into the container. Defaults to
	// BootstrapToken. Immutable.
	// +optional
	Bootstrap *Bootstrap `json:"bootstrap,omitempty" protobuf:"bytes,3,opt,name=bootstrap"`
	// Whether what the configuration leaves out is taken from the gardenlet that installs it: everything but its access
	// to the garden, its gateway and, of its Seed, all but domains, backup and the networks of shoots. Defaults to
	// true. Immutable.
	// +optional
	MergeWithParent *bool `json:"mergeWithParent,omitempty" protobuf:"bytes,4,opt,name=mergeWithParent"`
}

// Bootstrap is how a gardenlet gets its first access to the garden.
type Bootstrap string

const (
	// BootstrapServiceAccount is by the token of a service account made for it.
	BootstrapServiceAccount Bootstrap = "ServiceAccount"
	// BootstrapToken is by a bootstrap token made for it.
	BootstrapToken Bootstrap = "BootstrapToken"
	// BootstrapNone is by the kubeconfig in its configuration.
	BootstrapNone Bootstrap = "None"
)

// ManagedSeedStatus is what was last observed of a ManagedSeed.
type ManagedSeedStatus struct {
	// State, one entry per type.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,opt,name=conditions"`
	// Generation of the specification that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"bytes,2,opt,name=observedGeneration"`
}

const (
	// ManagedSeedShootReconciled says whether the shoot is there and reconciled.
	ManagedSeedShootReconciled gardencorev1beta1.ConditionType = "ShootReconciled"
	// ManagedSeedSeedRegistered says whether gardenlet was installed and has registered the seed.
	ManagedSeedSeedRegistered gardencorev1beta1.ConditionType = "SeedRegistered"
)
