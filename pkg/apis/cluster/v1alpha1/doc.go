// Package v1alpha1 holds the members of a fleet. The wire shape is that of cluster.karmada.io/v1alpha1.
//
// +k8s:deepcopy-gen=package
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.karmada.cluster.v1alpha1
// +groupName=cluster.karmada.io
package v1alpha1
