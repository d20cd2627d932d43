// Package v1alpha1 holds Work: the manifests that one member cluster has to run. The wire shape is that of
// work.karmada.io/v1alpha1.
//
// +k8s:deepcopy-gen=package
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.karmada.work.v1alpha1
// +groupName=work.karmada.io
package v1alpha1
