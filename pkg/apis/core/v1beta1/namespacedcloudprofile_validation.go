package v1beta1

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateNamespacedCloudProfile checks a NamespacedCloudProfile on its own.
func ValidateNamespacedCloudProfile(profile *NamespacedCloudProfile) field.ErrorList {
	errs := validateMeta(&profile.ObjectMeta, true, apivalidation.NameIsDNSSubdomain)
	spec, path := &profile.Spec, field.NewPath("spec")
	parent := path.Child("parent")
	errs = append(errs, validateSupported(spec.Parent.Kind, []string{CloudProfileReferenceKindCloudProfile},
		parent.Child("kind"))...)
	errs = append(errs, validateRequired(spec.Parent.Name, parent.Child("name"),
		"name the CloudProfile that is extended")...)
	if spec.Kubernetes != nil {
		errs = append(errs, validateExpirableVersions(spec.Kubernetes.Versions,
			path.Child("kubernetes", "versions"))...)
		errs = append(errs, validateOnlyExtended(spec.Kubernetes.Versions, path.Child("kubernetes", "versions"))...)
	}
	errs = append(errs, validateCertificates(spec.CABundle, path.Child("caBundle"))...)
	errs = append(errs, validateMachineImages(spec.MachineImages, path.Child("machineImages"), false)...)
	errs = append(errs, validateMachineTypes(spec.MachineTypes, path.Child("machineTypes"), false)...)
	errs = append(errs, validateVolumeTypes(spec.VolumeTypes, path.Child("volumeTypes"))...)
	return append(errs, validateLimits(spec.Limits, path.Child("limits"))...)
}

// validateOnlyExtended: Kubernetes versions are the parent's; only how long they last can be changed.
func validateOnlyExtended(versions []ExpirableVersion, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, version := range versions {
		errs = append(errs, validateNotSet(version.Classification, path.Index(i).Child("classification"),
			"is the parent's; only expirationDate or lifecycle can be given")...)
		if version.ExpirationDate == nil && len(version.Lifecycle) == 0 {
			errs = append(errs, field.Required(path.Index(i).Child("expirationDate"),
				"say until when the version of the parent can be used"))
		}
	}
	return errs
}

// ValidateNamespacedCloudProfileUpdate checks a change of a NamespacedCloudProfile.
func ValidateNamespacedCloudProfileUpdate(profile, old *NamespacedCloudProfile) field.ErrorList {
	errs := validateMetaUpdate(&profile.ObjectMeta, &old.ObjectMeta)
	errs = append(errs, validateImmutable(profile.Spec.Parent, old.Spec.Parent, field.NewPath("spec", "parent"))...)
	return append(errs, ValidateNamespacedCloudProfile(profile)...)
}
