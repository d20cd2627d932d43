// Package scheduler assigns shoots to seeds.
//
// The decision is a pure function over values (Schedule): which seed, or for each seed why not. The controller around it
// reads the garden, writes the decision through shoots/binding, and tells in the shoot's status what stands in the way
// when no seed fits.
package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Reasons say, for every seed that was not chosen, why.
type Reasons map[string]string

// String lists the reasons, ordered by seed.
func (r Reasons) String() string {
	var parts []string
	for _, seed := range slices.Sorted(maps.Keys(r)) {
		parts = append(parts, seed+": "+r[seed])
	}
	return strings.Join(parts, "; ")
}

// Snapshot is the state of the garden on which a decision rests.
type Snapshot struct {
	Seeds []*corev1beta1.Seed
	// Shoots are all shoots, whose seeds have less room because of them.
	Shoots []*corev1beta1.Shoot
	// Promised counts shoots that were assigned to a seed but are not in Shoots yet.
	Promised map[string]int
	// Profile is the cloud profile of the shoot to be scheduled.
	Profile *corev1beta1.CloudProfileSpec
	// ExposureClass is the one the shoot asks for, if any.
	ExposureClass *corev1beta1.ExposureClass
}

// Schedule chooses the seed with the fewest shoots among those that fit; of equals, the first by name. When none fits
// the name is empty, and the reasons cover every seed.
func Schedule(shoot *corev1beta1.Shoot, snapshot Snapshot) (seed string, reasons Reasons) {
	used := shootsPerSeed(snapshot)
	reasons = Reasons{}
	var best *corev1beta1.Seed
	for _, candidate := range snapshot.Seeds {
		if reason := unfit(shoot, candidate, snapshot, used[candidate.Name]); reason != "" {
			reasons[candidate.Name] = reason
			continue
		}
		if best == nil || isBetter(candidate, best, used) {
			best = candidate
		}
	}
	if best == nil {
		return "", reasons
	}
	return best.Name, reasons
}

func isBetter(candidate, best *corev1beta1.Seed, used map[string]int) bool {
	if used[candidate.Name] != used[best.Name] {
		return used[candidate.Name] < used[best.Name]
	}
	return candidate.Name < best.Name
}

// shootsPerSeed counts the control planes that each seed hosts or is to host. A shoot that moves counts twice.
func shootsPerSeed(snapshot Snapshot) map[string]int {
	used := maps.Clone(snapshot.Promised)
	if used == nil {
		used = map[string]int{}
	}
	for _, shoot := range snapshot.Shoots {
		wanted, actual := ptr.Deref(shoot.Spec.SeedName, ""), ptr.Deref(shoot.Status.SeedName, "")
		if wanted != "" {
			used[wanted]++
		}
		if actual != "" && actual != wanted {
			used[actual]++
		}
	}
	return used
}

// unfit tells why a seed cannot take the shoot; an empty string means it can.
func unfit(shoot *corev1beta1.Shoot, seed *corev1beta1.Seed, snapshot Snapshot, used int) string {
	checks := []func() string{
		func() string { return notReady(seed) },
		func() string { return wrongProvider(shoot, seed, snapshot.Profile) },
		func() string { return wrongRegion(shoot, seed) },
		func() string { return notSelected(shoot, seed, snapshot) },
		func() string { return tainted(shoot, seed, snapshot.ExposureClass) },
		func() string { return tooFewZones(shoot, seed) },
		func() string { return missingAccessRestriction(shoot, seed) },
		func() string { return overlappingNetworks(shoot, seed) },
		func() string { return full(seed, used) },
	}
	for _, check := range checks {
		if reason := check(); reason != "" {
			return reason
		}
	}
	return ""
}

func notReady(seed *corev1beta1.Seed) string {
	if seed.DeletionTimestamp != nil {
		return "is being deleted"
	}
	if seed.Spec.Settings != nil && seed.Spec.Settings.Scheduling != nil && !seed.Spec.Settings.Scheduling.Visible {
		return "takes no new shoots (spec.settings.scheduling.visible is false)"
	}
	if seed.Status.LastOperation == nil {
		return "has not been prepared by its gardenlet yet"
	}
	for _, condition := range seed.Status.Conditions {
		if condition.Type != corev1beta1.SeedGardenletReady {
			continue
		}
		if condition.Status == corev1beta1.ConditionTrue {
			return ""
		}
		return fmt.Sprintf("condition %s is %s: %s", condition.Type, condition.Status, condition.Message)
	}
	return "its gardenlet has not reported yet (no condition GardenletReady)"
}

// wrongProvider: workers need a seed of their provider, or of one that the cloud profile accepts. A shoot without workers
// runs anywhere.
func wrongProvider(shoot *corev1beta1.Shoot, seed *corev1beta1.Seed, profile *corev1beta1.CloudProfileSpec) string {
	accepted := acceptedProviders(shoot, profile)
	if len(accepted) == 0 || slices.Contains(accepted, "*") || slices.Contains(accepted, seed.Spec.Provider.Type) {
		return ""
	}
	return fmt.Sprintf("has provider %s, the shoot needs %s", seed.Spec.Provider.Type, strings.Join(accepted, " or "))
}

func acceptedProviders(shoot *corev1beta1.Shoot, profile *corev1beta1.CloudProfileSpec) []string {
	if selector := shoot.Spec.SeedSelector; selector != nil && len(selector.ProviderTypes) > 0 {
		return selector.ProviderTypes
	}
	if profile != nil && profile.SeedSelector != nil && len(profile.SeedSelector.ProviderTypes) > 0 {
		return profile.SeedSelector.ProviderTypes
	}
	if len(shoot.Spec.Provider.Workers) == 0 {
		return nil
	}
	return []string{shoot.Spec.Provider.Type}
}

func wrongRegion(shoot *corev1beta1.Shoot, seed *corev1beta1.Seed) string {
	if shoot.Spec.Region == seed.Spec.Provider.Region {
		return ""
	}
	return fmt.Sprintf("is in region %s, the shoot in %s", seed.Spec.Provider.Region, shoot.Spec.Region)
}

func notSelected(shoot *corev1beta1.Shoot, seed *corev1beta1.Seed, snapshot Snapshot) string {
	selectors := map[string]*corev1beta1.SeedSelector{"the shoot": shoot.Spec.SeedSelector}
	if snapshot.Profile != nil {
		selectors["the cloud profile"] = snapshot.Profile.SeedSelector
	}
	if class := snapshot.ExposureClass; class != nil && class.Scheduling != nil {
		selectors["the exposure class"] = class.Scheduling.SeedSelector
	}
	for _, owner := range slices.Sorted(maps.Keys(selectors)) {
		if selector := selectors[owner]; selector != nil && !matches(&selector.LabelSelector, seed.Labels) {
			return "is not selected by the seedSelector of " + owner
		}
	}
	return ""
}

func matches(selector *metav1.LabelSelector, set map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(set))
}

func tainted(shoot *corev1beta1.Shoot, seed *corev1beta1.Seed, class *corev1beta1.ExposureClass) string {
	tolerations := slices.Clone(shoot.Spec.Tolerations)
	if class != nil && class.Scheduling != nil {
		tolerations = append(tolerations, class.Scheduling.Tolerations...)
	}
	for _, taint := range seed.Spec.Taints {
		if !slices.ContainsFunc(tolerations, func(t corev1beta1.Toleration) bool {
			return t.Key == taint.Key && (t.Value == nil || ptr.Equal(t.Value, taint.Value))
		}) {
			return "has taint " + taint.Key + ", which the shoot does not tolerate"
		}
	}
	return ""
}

// zonesForHighAvailability is what a control plane that survives the loss of a zone needs.
const zonesForHighAvailability = 3

func tooFewZones(shoot *corev1beta1.Shoot, seed *corev1beta1.Seed) string {
	plane := shoot.Spec.ControlPlane
	if plane == nil || plane.HighAvailability == nil || plane.HighAvailability.FailureTolerance.Type != corev1beta1.FailureToleranceTypeZone {
		return ""
	}
	if zones := len(seed.Spec.Provider.Zones); zones < zonesForHighAvailability {
		return fmt.Sprintf("has %d zones, failure tolerance zone needs %d", zones, zonesForHighAvailability)
	}
	return ""
}

func missingAccessRestriction(shoot *corev1beta1.Shoot, seed *corev1beta1.Seed) string {
	for _, wanted := range shoot.Spec.AccessRestrictions {
		if !slices.ContainsFunc(seed.Spec.AccessRestrictions, func(r corev1beta1.AccessRestriction) bool { return r.Name == wanted.Name }) {
			return "does not offer access restriction " + wanted.Name
		}
	}
	return ""
}

func full(seed *corev1beta1.Seed, used int) string {
	room, limited := seed.Status.Allocatable[corev1.ResourceName(corev1beta1.ResourceShoots)]
	if !limited || int64(used) < room.Value() {
		return ""
	}
	return fmt.Sprintf("is full: %d of %d shoots", used, room.Value())
}
