// Package v1alpha1 holds the policies of a fleet: which objects go to which member clusters, how replicas are divided
// and what is changed per cluster. The wire shape is that of policy.karmada.io/v1alpha1.
//
// +k8s:deepcopy-gen=package
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.karmada.policy.v1alpha1
// +groupName=policy.karmada.io
package v1alpha1
