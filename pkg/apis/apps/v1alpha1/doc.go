// Package v1alpha1 holds the WorkloadRebalancer, with which people ask for placements to be decided anew. The wire
// shape is that of apps.karmada.io/v1alpha1.
//
// +k8s:deepcopy-gen=package
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.karmada.apps.v1alpha1
// +groupName=apps.karmada.io
package v1alpha1
