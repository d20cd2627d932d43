package admission

import (
	"slices"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/extensionuse"
)

// offers are what extensions can be used for, with the resource of the registration that says so.
type offers map[extensionuse.KindType]gardencorev1beta1.ControllerResource

// registered returns what registrations offer.
func registered(registrations []*gardencorev1beta1.ControllerRegistration) offers {
	offered := offers{}
	for _, registration := range registrations {
		if registration.DeletionTimestamp != nil {
			continue
		}
		for _, resource := range registration.Spec.Resources {
			offered[extensionuse.KindType{Kind: resource.Kind, Type: resource.Type}] = resource
		}
	}
	return offered
}

// typesOf returns the types of a kind that are offered, sorted.
func typesOf(offered offers, kind string) []string {
	var types []string
	for extension := range offered {
		if extension.Kind == kind {
			types = append(types, extension.Type)
		}
	}
	slices.Sort(types)
	return types
}
