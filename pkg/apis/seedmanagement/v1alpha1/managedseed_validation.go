package v1alpha1

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

var bootstraps = []Bootstrap{BootstrapServiceAccount, BootstrapToken, BootstrapNone}

// ValidateManagedSeed checks a ManagedSeed on its own. Whether its shoot can be a seed is for admission to say.
func ValidateManagedSeed(managedSeed *ManagedSeed) field.ErrorList {
	errs := validateMeta(&managedSeed.ObjectMeta)
	errs = append(errs, validateOperation(&managedSeed.ObjectMeta, gardencorev1beta1.GardenerOperationReconcile,
		gardencorev1beta1.GardenerOperationRenewKubeconfig)...)
	path := field.NewPath("spec")
	if managedSeed.Spec.Shoot == nil || managedSeed.Spec.Shoot.Name == "" {
		errs = append(errs, field.Required(path.Child("shoot", "name"), "name the Shoot that becomes a seed"))
	}
	return append(errs, validateGardenletConfig(&managedSeed.Spec.Gardenlet, path.Child("gardenlet"))...)
}

// ValidateManagedSeedUpdate checks a change of a ManagedSeed.
func ValidateManagedSeedUpdate(managedSeed, old *ManagedSeed) field.ErrorList {
	errs := validateMetaUpdate(&managedSeed.ObjectMeta, &old.ObjectMeta)
	errs = append(errs, validateOperationUpdate(&managedSeed.ObjectMeta, &old.ObjectMeta)...)
	errs = append(errs, validateManagedSeedSpecUpdate(&managedSeed.Spec, &old.Spec, field.NewPath("spec"))...)
	return append(errs, ValidateManagedSeed(managedSeed)...)
}

// ValidateManagedSeedStatusUpdate checks a change of the status of a ManagedSeed.
func ValidateManagedSeedStatusUpdate(managedSeed, old *ManagedSeed) field.ErrorList {
	errs := validateMetaUpdate(&managedSeed.ObjectMeta, &old.ObjectMeta)
	return append(errs, apivalidation.ValidateNonnegativeField(managedSeed.Status.ObservedGeneration,
		field.NewPath("status", "observedGeneration"))...)
}

func validateManagedSeedSpecUpdate(spec, old *ManagedSeedSpec, path *field.Path) field.ErrorList {
	gardenlet := path.Child("gardenlet")
	errs := validateImmutable(spec.Shoot, old.Shoot, path.Child("shoot"))
	errs = append(errs, validateImmutable(spec.Gardenlet.Bootstrap, old.Gardenlet.Bootstrap,
		gardenlet.Child("bootstrap"))...)
	return append(errs, validateImmutable(spec.Gardenlet.MergeWithParent, old.Gardenlet.MergeWithParent,
		gardenlet.Child("mergeWithParent"))...)
}

// validateManagedSeedTemplate checks what ManagedSeeds of a set are made from.
func validateManagedSeedTemplate(template *ManagedSeedTemplate, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(template.Labels, path.Child("metadata", "labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(template.Annotations,
		path.Child("metadata", "annotations"))...)
	if template.Spec.Shoot != nil {
		errs = append(errs, field.Forbidden(path.Child("spec", "shoot"),
			"must not be set: each ManagedSeed gets a Shoot of its own"))
	}
	return append(errs, validateGardenletConfig(&template.Spec.Gardenlet, path.Child("spec", "gardenlet"))...)
}

func validateGardenletConfig(gardenlet *GardenletConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if gardenlet.Deployment != nil {
		errs = append(errs, validateDeployment(gardenlet.Deployment, path.Child("deployment"))...)
	}
	rules := configRules{bootstrap: BootstrapNone}
	if gardenlet.Bootstrap != nil {
		rules.bootstrap = *gardenlet.Bootstrap
	}
	errs = append(errs, validateConfiguration(gardenlet.Config, rules, path.Child("config"))...)
	return append(errs, validateSupported(gardenlet.Bootstrap, bootstraps, path.Child("bootstrap"))...)
}
