// Package v1alpha1 holds the kinds of fleets that are Trellis' own: the FleetGrowth, by which a fleet gets more machines, and gives them
// back.
//
// +k8s:deepcopy-gen=package
// +kubebuilder:object:generate=true
// +groupName=fleet.trellis.garden
package v1alpha1
