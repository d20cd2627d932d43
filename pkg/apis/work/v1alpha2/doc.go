// Package v1alpha2 holds the bindings of a fleet: one object, the placement it was given and what became of it in each
// member. The wire shape is that of work.karmada.io/v1alpha2.
//
// +k8s:deepcopy-gen=package
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.karmada.work.v1alpha2
// +groupName=work.karmada.io
package v1alpha2
