package admission

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// zonesForZoneTolerance is how many zones of a seed a control plane needs that survives the loss of one.
const zonesForZoneTolerance = 3

// validateSeed checks an assignment to a seed, and that a shoot stays fit for the seed that it has.
func (s *shootValidator) validateSeed(ctx context.Context,
	shoot, old *gardencorev1beta1.Shoot) (field.ErrorList, error) {
	if shoot.Spec.SeedName == nil {
		return nil, nil
	}
	assigned := old == nil || !ptr.Equal(old.Spec.SeedName, shoot.Spec.SeedName)
	if !assigned && !needsMoreOfSeed(shoot, old) {
		return nil, nil
	}
	path := field.NewPath("spec", "seedName")
	seed, err := get[*gardencorev1beta1.Seed](ctx, s.Reader, gardencorev1beta1.Resource("seeds"), "",
		*shoot.Spec.SeedName)
	if isMissing(err) {
		return field.ErrorList{field.NotFound(path, *shoot.Spec.SeedName)}, nil
	}
	if err != nil {
		return nil, err
	}
	if !assigned {
		return append(validateSelectors(shoot, seed, nil, path), validateZoneTolerance(shoot, seed)...), nil
	}
	return s.validateAssignment(ctx, shoot, seed, path)
}

// needsMoreOfSeed tells whether a change may make a shoot unfit for its seed.
func needsMoreOfSeed(shoot, old *gardencorev1beta1.Shoot) bool {
	return !apiequality.Semantic.DeepEqual(shoot.Spec.SeedSelector, old.Spec.SeedSelector) ||
		toleratesZones(shoot) != toleratesZones(old)
}

func (s *shootValidator) validateAssignment(ctx context.Context, shoot *gardencorev1beta1.Shoot,
	seed *gardencorev1beta1.Seed, path *field.Path) (field.ErrorList, error) {
	profile, err := profileOf(ctx, s.Reader, shoot)
	if err != nil && !isMissing(err) {
		return nil, err
	}
	errs := validateSeedFor(shoot, seed, profile, path)
	if limit, limited := seed.Status.Allocatable[corev1.ResourceName(gardencorev1beta1.ResourceShoots)]; limited {
		shoots, err := list[*gardencorev1beta1.Shoot](ctx, s.Reader, gardencorev1beta1.Resource("shoots"), "",
			fields.OneTermEqualSelector("spec.seedName", seed.Name))
		if err != nil {
			return nil, err
		}
		if int64(len(shoots)) >= limit.Value() {
			errs = append(errs, field.Invalid(path, seed.Name,
				fmt.Sprintf("the seed is full: it hosts %d shoots, and its limit (status.allocatable.shoots) is %d",
					len(shoots), limit.Value())))
		}
	}
	return errs, nil
}

// validateSeedFor checks that a seed may take the shoot. The cloud profile may be nil.
func validateSeedFor(shoot *gardencorev1beta1.Shoot, seed *gardencorev1beta1.Seed,
	profile *gardencorev1beta1.CloudProfileSpec, path *field.Path) field.ErrorList {
	if seed.DeletionTimestamp != nil {
		return field.ErrorList{field.Invalid(path, seed.Name, "the seed is being deleted")}
	}
	if gardencorev1beta1.IsSeedLost(seed) {
		return field.ErrorList{field.Invalid(path, seed.Name, "the seed is confirmed to be lost")}
	}
	var errs field.ErrorList
	for _, taint := range seed.Spec.Taints {
		if !tolerates(shoot.Spec.Tolerations, taint) {
			errs = append(errs, field.Invalid(path, seed.Name,
				fmt.Sprintf("the shoot does not tolerate the seed's taint %s: add it to spec.tolerations, if the "+
					"project may", describeToleration(gardencorev1beta1.Toleration(taint)))))
		}
	}
	errs = append(errs, validateSelectors(shoot, seed, profile, path)...)
	errs = append(errs, validateZoneTolerance(shoot, seed)...)
	errs = append(errs, validateZones(shoot, seed)...)
	return append(errs, validateRestrictions(shoot, seed)...)
}

func tolerates(tolerations []gardencorev1beta1.Toleration, taint gardencorev1beta1.SeedTaint) bool {
	return slices.ContainsFunc(tolerations, func(toleration gardencorev1beta1.Toleration) bool {
		return toleration.Key == taint.Key && (toleration.Value == nil || ptr.Equal(toleration.Value, taint.Value))
	})
}

func validateSelectors(shoot *gardencorev1beta1.Shoot, seed *gardencorev1beta1.Seed,
	profile *gardencorev1beta1.CloudProfileSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !selectsSeed(shoot.Spec.SeedSelector, seed) {
		errs = append(errs, field.Invalid(path, seed.Name, "spec.seedSelector does not select the seed"))
	}
	if profile != nil && !selectsSeed(profile.SeedSelector, seed) {
		errs = append(errs, field.Invalid(path, seed.Name,
			"the seedSelector of the cloud profile does not select the seed"))
	}
	return errs
}

func selectsSeed(selector *gardencorev1beta1.SeedSelector, seed *gardencorev1beta1.Seed) bool {
	if selector == nil {
		return true
	}
	types := selector.ProviderTypes
	fits := len(types) == 0 || slices.Contains(types, "*") || slices.Contains(types, seed.Spec.Provider.Type)
	return fits && selects(&selector.LabelSelector, seed.Labels)
}

func toleratesZones(shoot *gardencorev1beta1.Shoot) bool {
	return gardencorev1beta1.FailureToleranceOf(&shoot.Spec) == gardencorev1beta1.FailureToleranceTypeZone
}

func validateZoneTolerance(shoot *gardencorev1beta1.Shoot, seed *gardencorev1beta1.Seed) field.ErrorList {
	if zones := len(seed.Spec.Provider.Zones); toleratesZones(shoot) && zones < zonesForZoneTolerance {
		return field.ErrorList{
			field.Invalid(field.NewPath("spec", "controlPlane", "highAvailability", "failureTolerance", "type"),
				gardencorev1beta1.FailureToleranceTypeZone,
				fmt.Sprintf("needs a seed with %d zones, seed %q has %d", zonesForZoneTolerance, seed.Name, zones)),
		}
	}
	return nil
}

// validateZones: the control plane runs in all zones of the seed, so these have to be the ones that the shoot wants.
func validateZones(shoot *gardencorev1beta1.Shoot, seed *gardencorev1beta1.Seed) field.ErrorList {
	reason := gardencorev1beta1.UnfitZones(shoot, seed)
	if reason == "" {
		return nil
	}
	path := field.NewPath("spec", "controlPlane", "zones")
	return field.ErrorList{
		field.Invalid(path, shoot.Spec.ControlPlane.Zones, fmt.Sprintf("seed %q %s", seed.Name, reason)),
	}
}

func validateRestrictions(shoot *gardencorev1beta1.Shoot, seed *gardencorev1beta1.Seed) field.ErrorList {
	var errs field.ErrorList
	for i, wanted := range shoot.Spec.AccessRestrictions {
		if !slices.ContainsFunc(seed.Spec.AccessRestrictions,
			func(r gardencorev1beta1.AccessRestriction) bool { return r.Name == wanted.Name }) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "accessRestrictions").Index(i).Child("name"),
				wanted.Name, fmt.Sprintf("seed %q does not offer this restriction", seed.Name)))
		}
	}
	return errs
}
