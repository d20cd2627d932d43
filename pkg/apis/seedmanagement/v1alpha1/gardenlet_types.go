package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "github.com/trellis-garden/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Gardenlet is the gardenlet of a seed that is not a shoot. Once it runs, it keeps itself as this object says. Its seed
// has the name of the object.
type Gardenlet struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// What is wanted.
	// +optional
	Spec GardenletSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// What was observed; written by controllers.
	// +optional
	Status GardenletStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GardenletList is a list of Gardenlet objects.
type GardenletList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// The objects.
	Items []Gardenlet `json:"items" protobuf:"bytes,2,opt,name=items"`
}

// GardenletSpec is how a gardenlet is deployed and configured.
type GardenletSpec struct {
	// How it is deployed.
	Deployment GardenletSelfDeployment `json:"deployment" protobuf:"bytes,1,opt,name=deployment"`
	// Its GardenletConfiguration (gardenlet.config.gardener.cloud/v1alpha1) with seedConfig. The name of the seed must
	// not be given: it is that of the Gardenlet.
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty" protobuf:"bytes,2,opt,name=config"`
	// Secret of the same namespace with a kubeconfig (key kubeconfig) of the cluster to install it into for the first
	// time. Defaults to the runtime cluster of the garden.
	// +optional
	KubeconfigSecretRef *corev1.LocalObjectReference `json:"kubeconfigSecretRef,omitempty" protobuf:"bytes,3,opt,name=kubeconfigSecretRef"`
}

// GardenletSelfDeployment is how a gardenlet deploys itself.
type GardenletSelfDeployment struct {
	// GardenletDeployment holds what it has in common with gardenlets of managed seeds.
	// +optional
	GardenletDeployment `json:",inline" protobuf:"bytes,1,opt,name=gardenletDeployment"`
	// Its chart.
	Helm GardenletHelm `json:"helm" protobuf:"bytes,2,opt,name=helm"`
	// Image vector, as YAML, that replaces images of what it deploys.
	// +optional
	ImageVectorOverwrite *string `json:"imageVectorOverwrite,omitempty" protobuf:"bytes,3,opt,name=imageVectorOverwrite"`
	// Image vectors, as YAML, that replace images of what the components deploy that it deploys.
	// +optional
	ComponentImageVectorOverwrite *string `json:"componentImageVectorOverwrite,omitempty" protobuf:"bytes,4,opt,name=componentImageVectorOverwrite"`
}

// GardenletHelm names the chart of a gardenlet.
type GardenletHelm struct {
	// Where to pull the chart from.
	OCIRepository gardencorev1.OCIRepository `json:"ociRepository" protobuf:"bytes,1,opt,name=ociRepository"`
}

// GardenletStatus is what was last observed of a gardenlet.
type GardenletStatus struct {
	// State, one entry per type.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,opt,name=conditions"`
	// Generation of the specification that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"bytes,2,opt,name=observedGeneration"`
}

// GardenletReconciled says whether a gardenlet is deployed as its object says.
const GardenletReconciled gardencorev1beta1.ConditionType = "GardenletReconciled"
