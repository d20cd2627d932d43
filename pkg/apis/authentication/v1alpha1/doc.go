// Package v1alpha1 holds the kinds of authentication.gardener.cloud/v1alpha1: requests for short-lived kubeconfigs,
// which are posted to the subresources adminkubeconfig and viewerkubeconfig of shoots and are stored nowhere.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=cloud.gardener.authentication.v1alpha1
// +groupName=authentication.gardener.cloud
package v1alpha1
