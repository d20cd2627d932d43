package v1beta1

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateShootState checks a ShootState on its own.
func ValidateShootState(state *ShootState) field.ErrorList {
	errs := validateMeta(&state.ObjectMeta, true, apivalidation.NameIsDNSSubdomain)
	path := field.NewPath("spec")
	for i, data := range state.Spec.Gardener {
		at := path.Child("gardener").Index(i)
		errs = append(errs, validateRequired(data.Name, at.Child("name"), "name the data")...)
		errs = append(errs, validateRequired(data.Type, at.Child("type"), "such as secret")...)
	}
	for i, extension := range state.Spec.Extensions {
		at := path.Child("extensions").Index(i)
		errs = append(errs, validateRequired(extension.Kind, at.Child("kind"),
			"name the kind of the extension object")...)
		errs = append(errs, validateResources(extension.Resources, at.Child("resources"))...)
	}
	for i, data := range state.Spec.Resources {
		at := path.Child("resources").Index(i)
		errs = append(errs, validateRequired(data.Kind, at.Child("kind"), "name the kind of the object")...)
		errs = append(errs, validateRequired(data.Name, at.Child("name"), "name the object")...)
		errs = append(errs, validateRequired(data.APIVersion, at.Child("apiVersion"),
			"name the API version of the object, such as v1")...)
	}
	return errs
}

// ValidateShootStateUpdate checks a change of a ShootState.
func ValidateShootStateUpdate(state, old *ShootState) field.ErrorList {
	errs := validateMetaUpdate(&state.ObjectMeta, &old.ObjectMeta)
	return append(errs, ValidateShootState(state)...)
}
