// Package v1alpha1 holds the kinds of extensions.gardener.cloud/v1alpha1: the contract between gardenlet, which writes the
// specifications, and extensions, which make them true and write the status.
//
// +k8s:deepcopy-gen=package
// +kubebuilder:object:generate=true
// +groupName=extensions.gardener.cloud
package v1alpha1
