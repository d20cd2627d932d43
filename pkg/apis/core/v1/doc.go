// Package v1 holds the one kind of core.gardener.cloud/v1, ControllerDeployment, and its conversion from and to
// v1beta1.
//
// Objects are stored as v1beta1. What one version has no field for travels in annotations, so that nothing is lost when
// an object is read in one version and written in the other (see conversion.go).
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=cloud.gardener.core.v1
// +groupName=core.gardener.cloud
package v1
