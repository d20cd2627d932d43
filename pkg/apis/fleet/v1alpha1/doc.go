// Package v1alpha1 holds the kinds of fleets that are Trellis' own: the FleetGrowth, by which a fleet gets more
// machines, and gives them back.
//
// +k8s:deepcopy-gen=package
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=garden.trellis.fleet.v1alpha1
// +groupName=fleet.trellis.garden
package v1alpha1
