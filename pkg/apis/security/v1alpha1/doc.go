// Package v1alpha1 holds the kinds of security.gardener.cloud/v1alpha1: credentials for infrastructures and who may use
// them.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=cloud.gardener.security.v1alpha1
// +groupName=security.gardener.cloud
package v1alpha1
