package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels of the Works that bring a FederatedResourceQuota to members.
const (
	// FederatedResourceQuotaNamespaceLabel holds the quota's namespace.
	FederatedResourceQuotaNamespaceLabel = "federatedresourcequota.karmada.io/namespace"
	// FederatedResourceQuotaNameLabel holds the quota's name.
	FederatedResourceQuotaNameLabel = "federatedresourcequota.karmada.io/name"
)

// FederatedResourceQuota limits what the objects of its namespace may ask for, in all clusters together and in single
// ones.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=federatedresourcequotas,scope=Namespaced,categories={karmada-io}
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:JSONPath=`.status.overall`,name="Overall",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.overallUsed`,name="Overall-Used",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="name must not be longer than 63 characters: it is that of the ResourceQuotas in members as well",fieldPath=".metadata"
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type FederatedResourceQuota struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The limits.
	Spec FederatedResourceQuotaSpec `json:"spec"`
	// What is used; written by controllers.
	// +optional
	Status FederatedResourceQuotaStatus `json:"status,omitempty"`
}

// FederatedResourceQuotaList is a list of FederatedResourceQuotas.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type FederatedResourceQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []FederatedResourceQuota `json:"items"`
}

// FederatedResourceQuotaSpec holds limits.
type FederatedResourceQuotaSpec struct {
	// Overall limits what the workloads of the namespace request in all clusters together: cpu and requests.cpu,
	// memory, …, and pods. A decision of the scheduler that would exceed it is not carried out.
	Overall corev1.ResourceList `json:"overall"`
	// StaticAssignments become ResourceQuotas in those clusters.
	// +kubebuilder:validation:MaxItems=1024
	// +listType=map
	// +listMapKey=clusterName
	// +optional
	StaticAssignments []StaticClusterAssignment `json:"staticAssignments,omitempty"`
}

// StaticClusterAssignment holds the limits of one cluster.
type StaticClusterAssignment struct {
	// ClusterName names the cluster.
	// +kubebuilder:validation:MinLength=1
	ClusterName string `json:"clusterName"`
	// Hard is spec.hard of the ResourceQuota there.
	Hard corev1.ResourceList `json:"hard"`
}

// FederatedResourceQuotaStatus tells what is used.
type FederatedResourceQuotaStatus struct {
	// Overall is the limit that is enforced.
	// +optional
	Overall corev1.ResourceList `json:"overall,omitempty"`
	// OverallUsed is what the workloads of the namespace request where they are placed. Of resources that workloads
	// don't request, it is the sum of what the clusters with an assignment report.
	// +optional
	OverallUsed corev1.ResourceList `json:"overallUsed,omitempty"`
	// AggregatedStatus is that of the ResourceQuotas in clusters.
	// +optional
	AggregatedStatus []ClusterQuotaStatus `json:"aggregatedStatus,omitempty"`
}

// ClusterQuotaStatus is the status of one cluster's ResourceQuota.
type ClusterQuotaStatus struct {
	// ClusterName names the cluster.
	ClusterName string `json:"clusterName"`

	corev1.ResourceQuotaStatus `json:",inline"`
}
