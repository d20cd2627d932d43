package seedauthorizer

import (
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
)

// Extensions write shoots only in namespaces where a fleet of their seed may grow. Gardenlets, and other seeds, gain
// nothing by it.
func TestFleetsGrowWhereTheyMay(t *testing.T) {
	g := state("one")
	fleet := shootOn("garden-one", "fleet", "one")
	fleet.Spec.Provider.Workers, fleet.Spec.Extensions = nil, []gardencorev1beta1.Extension{{Type: federationExtension}}
	writes := []string{
		"create garden/shoots garden-one/", "create garden/shoots garden-one/new",
		"patch garden/shoots garden-one/member-on-another-seed",
		"update garden/shoots garden-one/s", "delete garden/shoots garden-one/member-on-another-seed",
	}
	never := []string{
		"deletecollection garden/shoots garden-one/", "patch garden/shoots garden-other/s",
		"create garden/shoots garden-other/",
		"patch garden/shoots/status garden-one/s", "update garden/shoots/binding garden-one/s",
	}
	for _, allowed := range []string{"", "shoots", "pools", "pools,shoots", ""} {
		fleet.Annotations = map[string]string{fleetv1alpha1.AllowGrowthAnnotation: allowed}
		g.Set(vertexOf(kindShoot, fleet), shootEdges(fleet))
		grows := fleetv1alpha1.AllowsGrowth(allowed, fleetv1alpha1.GrowPools)
		for _, request := range writes {
			check(t, g, extension, request, grows)
			check(t, g, Identity{Seed: "two", Extension: true}, request, false)
		}
		for _, request := range never {
			check(t, g, extension, request, false)
		}
		check(t, g, gardenlet, "create garden/shoots garden-one/", false)
		check(t, g, gardenlet, "delete garden/shoots garden-one/s", false)
	}
}
