// Package v1alpha1 holds the kinds of operations.gardener.cloud/v1alpha1: what people need to look into a shoot, for a
// while.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=cloud.gardener.operations.v1alpha1
// +groupName=operations.gardener.cloud
package v1alpha1
