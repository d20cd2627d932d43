package v1beta1

import (
	"fmt"
	"slices"
)

// UnfitZones says why the control plane of a shoot would not run in the zones that the shoot wants it in; empty when it
// would, or the seed takes these as a preference. A control plane runs on any nodes of its seed, so the zones of the
// seed have to be those.
func UnfitZones(shoot *Shoot, seed *Seed) string {
	wanted := deref(shoot.Spec.ControlPlane).Zones
	selection := deref(seed.Spec.Settings).ZoneSelection
	if len(wanted) == 0 || deref(selection).Mode == ZoneSelectionModePrefer {
		return ""
	}
	zones := seed.Spec.Provider.Zones
	for _, zone := range wanted {
		if !slices.Contains(zones, zone) {
			return fmt.Sprintf("has no zone %s, which spec.controlPlane.zones of the shoot asks for", zone)
		}
	}
	for _, zone := range zones {
		if !slices.Contains(wanted, zone) {
			return fmt.Sprintf("is in zone %s as well, which spec.controlPlane.zones of the shoot does not have", zone)
		}
	}
	return ""
}
