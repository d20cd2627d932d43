package scheduler

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	// zonesForHighAvailability is what a control plane that survives the loss of a zone needs.
	zonesForHighAvailability = 3
	// anyProvider in a seed selector accepts seeds of every provider.
	anyProvider = "*"
)

// requirements are what a shoot, its cloud profile and its exposure class ask of a seed, worked out once per decision.
type requirements struct {
	shoot *gardencorev1beta1.Shoot
	used  map[string]int
	// providers are lists each of which must hold the seed's provider.
	providers [][]string
	selectors []ownedSelector
	tolerated []gardencorev1beta1.Toleration
	// region is the one the seed has to be in; empty when it may be in any.
	region string
	// nearest asks for the seeds in the nearest region.
	nearest bool
}

// ownedSelector is a parsed selector and who asks for it.
type ownedSelector struct {
	owner    string
	selector labels.Selector
}

func requirementsOf(snapshot Snapshot, shoot *gardencorev1beta1.Shoot) *requirements {
	wanted := &requirements{shoot: shoot, used: snapshot.Used, tolerated: shoot.Spec.Tolerations}
	wanted.addSelector("the shoot", shoot.Spec.SeedSelector)
	if snapshot.Profile != nil {
		wanted.addSelector("the cloud profile", snapshot.Profile.SeedSelector)
	}
	if class := snapshot.ExposureClass; class != nil && class.Scheduling != nil {
		wanted.addSelector("the exposure class", class.Scheduling.SeedSelector)
		wanted.tolerated = slices.Concat(wanted.tolerated, class.Scheduling.Tolerations)
	}
	if len(wanted.providers) == 0 && !gardencorev1beta1.IsWorkerless(shoot) {
		wanted.providers = [][]string{{shoot.Spec.Provider.Type}}
	}
	// Where a shoot for tests runs does not matter: it evens out the load of seeds.
	if ptr.Deref(shoot.Spec.Purpose, "") != gardencorev1beta1.ShootPurposeTesting {
		wanted.nearest = snapshot.Strategy == MinimalDistance
		if !wanted.nearest {
			wanted.region = shoot.Spec.Region
		}
	}
	return wanted
}

// addSelector adds what a seedSelector asks for. The providers it names replace the rule that seeds are of the shoot's
// own.
func (r *requirements) addSelector(owner string, selector *gardencorev1beta1.SeedSelector) {
	if selector == nil {
		return
	}
	if len(selector.ProviderTypes) > 0 {
		r.providers = append(r.providers, selector.ProviderTypes)
	}
	parsed, err := metav1.LabelSelectorAsSelector(&selector.LabelSelector)
	if err != nil { // the API refuses such selectors
		parsed = labels.Nothing()
	}
	r.selectors = append(r.selectors, ownedSelector{owner: owner, selector: parsed})
}

// reject tells why a seed cannot take the shoot, by the first reason in order; nil means it can.
func (r *requirements) reject(seed *gardencorev1beta1.Seed) *Rejection {
	for _, check := range []func(*gardencorev1beta1.Seed) *Rejection{
		unusable, r.wrongProvider, r.wrongRegion, r.notSelected, r.tainted, r.tooFewZones, r.unfitZones,
		r.missingAccessRestriction, notReady, r.full,
	} {
		if rejection := check(seed); rejection != nil {
			return rejection
		}
	}
	return nil
}

func rejection(reason Reason, format string, arguments ...any) *Rejection {
	return &Rejection{Reason: reason, Message: fmt.Sprintf(format, arguments...)}
}

func unusable(seed *gardencorev1beta1.Seed) *Rejection {
	if seed.DeletionTimestamp != nil {
		return rejection(Deleted, "is being deleted")
	}
	if settings := seed.Spec.Settings; settings != nil && settings.Scheduling != nil && !settings.Scheduling.Visible {
		return rejection(Invisible, "takes no new shoots (spec.settings.scheduling.visible is false)")
	}
	return nil
}

// notReady: a seed has to have been prepared by its gardenlet, which is alive, and the buckets for backups, where there
// are to be backups, have to work.
func notReady(seed *gardencorev1beta1.Seed) *Rejection {
	if seed.Status.LastOperation == nil {
		return rejection(NotReady, "has not been prepared by its gardenlet yet")
	}
	if gardencorev1beta1.IsSeedLost(seed) {
		return rejection(NotReady, "is confirmed to be lost")
	}
	if problem := conditionProblem(seed, gardencorev1beta1.SeedGardenletReady); problem != "" {
		return rejection(NotReady, "%s", problem)
	}
	if seed.Spec.Backup == nil {
		return nil
	}
	if problem := conditionProblem(seed, gardencorev1beta1.SeedBackupBucketsReady); problem != "" {
		return rejection(BackupNotReady, "%s", problem)
	}
	return nil
}

// conditionProblem tells what keeps a condition from being True; empty when it is.
func conditionProblem(seed *gardencorev1beta1.Seed, wanted gardencorev1beta1.ConditionType) string {
	for _, condition := range seed.Status.Conditions {
		if condition.Type != wanted {
			continue
		}
		if condition.Status == gardencorev1beta1.ConditionTrue {
			return ""
		}
		return fmt.Sprintf("has condition %s %s: %s", condition.Type, condition.Status, condition.Message)
	}
	return fmt.Sprintf("has not reported yet (no condition %s)", wanted)
}

// wrongProvider: workers need a seed of their provider, or of one that the selectors accept. A shoot without workers
// runs anywhere.
func (r *requirements) wrongProvider(seed *gardencorev1beta1.Seed) *Rejection {
	for _, accepted := range r.providers {
		if !slices.Contains(accepted, anyProvider) && !slices.Contains(accepted, seed.Spec.Provider.Type) {
			return rejection(OtherProvider, "has provider %s, the shoot needs %s", seed.Spec.Provider.Type,
				strings.Join(accepted, " or "))
		}
	}
	return nil
}

func (r *requirements) wrongRegion(seed *gardencorev1beta1.Seed) *Rejection {
	if r.region == "" || r.region == seed.Spec.Provider.Region {
		return nil
	}
	return rejection(OtherRegion, "is in region %s, the shoot in %s", seed.Spec.Provider.Region, r.region)
}

func (r *requirements) notSelected(seed *gardencorev1beta1.Seed) *Rejection {
	for _, wanted := range r.selectors {
		if !wanted.selector.Matches(labels.Set(seed.Labels)) {
			return rejection(NotSelected, "is not selected by the seedSelector of %s (%s)", wanted.owner,
				wanted.selector)
		}
	}
	return nil
}

func (r *requirements) tainted(seed *gardencorev1beta1.Seed) *Rejection {
	for _, taint := range seed.Spec.Taints {
		if !slices.ContainsFunc(r.tolerated, func(t gardencorev1beta1.Toleration) bool { return tolerates(t, taint) }) {
			return rejection(Tainted, "has taint %s, which the shoot does not tolerate", taintString(taint))
		}
	}
	return nil
}

// tolerates: a toleration without a value is for taints of any value.
func tolerates(toleration gardencorev1beta1.Toleration, taint gardencorev1beta1.SeedTaint) bool {
	return toleration.Key == taint.Key && (toleration.Value == nil || ptr.Equal(toleration.Value, taint.Value))
}

func taintString(taint gardencorev1beta1.SeedTaint) string {
	if taint.Value == nil {
		return taint.Key
	}
	return taint.Key + "=" + *taint.Value
}

func (r *requirements) tooFewZones(seed *gardencorev1beta1.Seed) *Rejection {
	if gardencorev1beta1.FailureToleranceOf(&r.shoot.Spec) != gardencorev1beta1.FailureToleranceTypeZone {
		return nil
	}
	if zones := len(seed.Spec.Provider.Zones); zones < zonesForHighAvailability {
		return rejection(MissingZones, "has %d zones, failure tolerance zone needs %d", zones, zonesForHighAvailability)
	}
	return nil
}

// unfitZones: the zones that a shoot wants its control plane in are a must, unless the seed takes them as a preference.
func (r *requirements) unfitZones(seed *gardencorev1beta1.Seed) *Rejection {
	if reason := gardencorev1beta1.UnfitZones(r.shoot, seed); reason != "" {
		return rejection(MissingZones, "%s", reason)
	}
	return nil
}

func (r *requirements) missingAccessRestriction(seed *gardencorev1beta1.Seed) *Rejection {
	for _, wanted := range r.shoot.Spec.AccessRestrictions {
		if !slices.ContainsFunc(seed.Spec.AccessRestrictions,
			func(offered gardencorev1beta1.AccessRestriction) bool { return offered.Name == wanted.Name }) {
			return rejection(NoAccessRestriction, "does not offer access restriction %s", wanted.Name)
		}
	}
	return nil
}

func (r *requirements) full(seed *gardencorev1beta1.Seed) *Rejection {
	room, limited := seed.Status.Allocatable[corev1.ResourceName(gardencorev1beta1.ResourceShoots)]
	used := r.used[seed.Name]
	if !limited || int64(used) < room.Value() {
		return nil
	}
	return rejection(Full, "is full: %d of %d shoots", used, room.Value())
}
