// Package v1alpha1 holds the CronFederatedHPA, which changes numbers of replicas in a fleet by the clock. The wire shape is that of
// autoscaling.karmada.io/v1alpha1.
//
// +k8s:deepcopy-gen=package
// +kubebuilder:object:generate=true
// +groupName=autoscaling.karmada.io
package v1alpha1
