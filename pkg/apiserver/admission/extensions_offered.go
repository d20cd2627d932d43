package admission

import (
	"slices"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/extensionuse"
)

// registered returns what registrations offer.
func registered(registrations []*corev1beta1.ControllerRegistration) map[extensionuse.KindType]corev1beta1.ControllerResource {
	offered := map[extensionuse.KindType]corev1beta1.ControllerResource{}
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
func typesOf(offered map[extensionuse.KindType]corev1beta1.ControllerResource, kind string) []string {
	var types []string
	for extension := range offered {
		if extension.Kind == kind {
			types = append(types, extension.Type)
		}
	}
	slices.Sort(types)
	return types
}
