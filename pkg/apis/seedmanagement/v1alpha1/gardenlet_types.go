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

// Gardenlet is the gardenlet of a seed that is not a shoot. Once it runs, it keeps itself as this object says. Its seed has the
// name of the object.
type Gardenlet struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	// +optional
	Spec GardenletSpec `json:"spec,omitempty"`
	// What was observed; written by controllers.
	// +optional
	Status GardenletStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GardenletList is a list of Gardenlet objects.
type GardenletList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []Gardenlet `json:"items"`
}

// GardenletSpec is how a gardenlet is deployed and configured.
type GardenletSpec struct {
	// How it is deployed.
	Deployment GardenletSelfDeployment `json:"deployment"`
	// Its GardenletConfiguration (gardenlet.config.gardener.cloud/v1alpha1) with seedConfig. The name of the seed must not be
	// given: it is that of the Gardenlet.
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty"`
	// Secret of the same namespace with a kubeconfig (key kubeconfig) of the cluster to install it into for the first time.
	// Defaults to the runtime cluster of the garden.
	// +optional
	KubeconfigSecretRef *corev1.LocalObjectReference `json:"kubeconfigSecretRef,omitempty"`
}

// GardenletSelfDeployment is how a gardenlet deploys itself.
type GardenletSelfDeployment struct {
	// GardenletDeployment holds what it has in common with gardenlets of managed seeds.
	// +optional
	GardenletDeployment `json:",inline"`
	// Its chart.
	Helm GardenletHelm `json:"helm"`
	// Image vector, as YAML, that replaces images of what it deploys.
	// +optional
	ImageVectorOverwrite *string `json:"imageVectorOverwrite,omitempty"`
	// Image vectors, as YAML, that replace images of what the components deploy that it deploys.
	// +optional
	ComponentImageVectorOverwrite *string `json:"componentImageVectorOverwrite,omitempty"`
}

// GardenletHelm names the chart of a gardenlet.
type GardenletHelm struct {
	// Where to pull the chart from.
	OCIRepository gardencorev1.OCIRepository `json:"ociRepository"`
}

// GardenletStatus is what was last observed of a gardenlet.
type GardenletStatus struct {
	// State, one entry per type.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// Generation of the specification that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// GardenletReconciled says whether a gardenlet is deployed as its object says.
const GardenletReconciled gardencorev1beta1.ConditionType = "GardenletReconciled"
