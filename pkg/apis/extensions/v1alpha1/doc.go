// Package v1alpha1 holds the kinds of extensions.gardener.cloud/v1alpha1: the contract between gardenlet, which writes
// the specifications, and extensions, which make them true and write the status.
//
// +k8s:deepcopy-gen=package
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=cloud.gardener.extensions.v1alpha1
// +groupName=extensions.gardener.cloud
package v1alpha1
