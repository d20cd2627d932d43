// Package v1alpha1 holds the FederatedHPA and the CronFederatedHPA, which change numbers of replicas in a fleet by what
// pods use in all members, and by the clock. The wire shape is that of autoscaling.karmada.io/v1alpha1.
//
// +k8s:deepcopy-gen=package
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.karmada.autoscaling.v1alpha1
// +groupName=autoscaling.karmada.io
package v1alpha1
