// Package v1alpha1 holds the kind of resources.gardener.cloud/v1alpha1: sets of objects that resource-manager keeps in
// a cluster.
//
// +k8s:deepcopy-gen=package
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=cloud.gardener.resources.v1alpha1
// +groupName=resources.gardener.cloud
package v1alpha1
