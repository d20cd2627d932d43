package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Bastion is a machine through which the nodes of a shoot are reached by SSH, for a while. It goes unless it is kept
// alive with the annotation gardener.cloud/operation=keepalive.
type Bastion struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// What is wanted.
	Spec BastionSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
	// What was observed; written by controllers.
	// +optional
	Status BastionStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// BastionList is a list of Bastion objects.
type BastionList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// The objects.
	Items []Bastion `json:"items" protobuf:"bytes,2,opt,name=items"`
}

// BastionSpec is for which shoot a bastion is, and who may reach it.
type BastionSpec struct {
	// The shoot, in the same namespace. Immutable.
	ShootRef corev1.LocalObjectReference `json:"shootRef" protobuf:"bytes,1,opt,name=shootRef"`
	// Seed of the shoot. Set by the server.
	// +optional
	SeedName *string `json:"seedName,omitempty" protobuf:"bytes,2,opt,name=seedName"`
	// Type of the shoot's provider. Set by the server.
	// +optional
	ProviderType *string `json:"providerType,omitempty" protobuf:"bytes,3,opt,name=providerType"`
	// Public key of the user, as in authorized_keys. Immutable.
	SSHPublicKey string `json:"sshPublicKey" protobuf:"bytes,4,opt,name=sshPublicKey"`
	// From where it may be reached; at least one range.
	Ingress []BastionIngressPolicy `json:"ingress" protobuf:"bytes,5,opt,name=ingress"`
}

// BastionIngressPolicy lets a range in.
type BastionIngressPolicy struct {
	// The range.
	IPBlock networkingv1.IPBlock `json:"ipBlock" protobuf:"bytes,1,opt,name=ipBlock"`
}

// BastionStatus is what was last observed of a bastion.
type BastionStatus struct {
	// Its public address.
	// +optional
	Ingress *corev1.LoadBalancerIngress `json:"ingress,omitempty" protobuf:"bytes,1,opt,name=ingress"`
	// State, one entry per type.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,2,opt,name=conditions"`
	// When it was last said to be needed. Set by the server when it is created and for every keepalive.
	// +optional
	LastHeartbeatTimestamp *metav1.Time `json:"lastHeartbeatTimestamp,omitempty" protobuf:"bytes,3,opt,name=lastHeartbeatTimestamp"`
	// When it will be deleted: an hour after the last heartbeat. Set by the server.
	// +optional
	ExpirationTimestamp *metav1.Time `json:"expirationTimestamp,omitempty" protobuf:"bytes,4,opt,name=expirationTimestamp"`
	// Generation of the specification that was last worked on.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty" protobuf:"bytes,5,opt,name=observedGeneration"`
	// Public keys with which it proves that it is this bastion, as in known_hosts but without a host. Absent: they are
	// not known.
	// +optional
	HostKeys []string `json:"hostKeys,omitempty" protobuf:"bytes,1001,rep,name=hostKeys"`
}

// BastionReady says whether the bastion can be used.
const BastionReady gardencorev1beta1.ConditionType = "BastionReady"
