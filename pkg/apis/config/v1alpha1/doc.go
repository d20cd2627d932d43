// Package v1alpha1 holds what teaches a fleet the kinds that it does not know: rules in Lua, webhooks that are asked,
// and the form of question and answer. The wire shape is that of config.karmada.io/v1alpha1.
//
// +k8s:deepcopy-gen=package
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.karmada.config.v1alpha1
// +groupName=config.karmada.io
package v1alpha1
