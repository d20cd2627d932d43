// Package v1beta1 holds the kinds of core.gardener.cloud/v1beta1, the API that people order clusters with, in its
// published wire shape. Beside the types of a kind lie its defaults (<kind>_defaults.go) and its validation
// (<kind>_validation.go); there is no internal version. What needs other objects than the one at hand, such as who may
// do what, is decided by pkg/apiserver.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=cloud.gardener.core.v1beta1
// +groupName=core.gardener.cloud
package v1beta1
