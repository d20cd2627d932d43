// Package apis holds FleetConfig, the settings of a fleet, as they are written in its Shoot.
//
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=garden.trellis.extensions.federation.v1alpha1
// +groupName=federation.extensions.trellis.garden
package apis
