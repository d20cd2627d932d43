package v1beta1

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxHandlerLength is the most characters of the handler of an ExposureClass.
const maxHandlerLength = 34

// ValidateExposureClass checks an ExposureClass on its own.
func ValidateExposureClass(class *ExposureClass) field.ErrorList {
	errs := validateMeta(&class.ObjectMeta, false, apivalidation.NameIsDNSSubdomain)
	handler := field.NewPath("handler")
	errs = append(errs, validateLabel(class.Handler, handler)...)
	if len(class.Handler) > maxHandlerLength {
		errs = append(errs, field.TooLong(handler, class.Handler, maxHandlerLength))
	}
	if scheduling := class.Scheduling; scheduling != nil {
		path := field.NewPath("scheduling")
		errs = append(errs, validateSeedSelector(scheduling.SeedSelector, path.Child("seedSelector"))...)
		errs = append(errs, validateTolerations(scheduling.Tolerations, path.Child("tolerations"))...)
	}
	return errs
}

// ValidateExposureClassUpdate checks a change of an ExposureClass.
func ValidateExposureClassUpdate(class, old *ExposureClass) field.ErrorList {
	errs := validateMetaUpdate(&class.ObjectMeta, &old.ObjectMeta)
	errs = append(errs, validateImmutable(class.Handler, old.Handler, field.NewPath("handler"))...)
	errs = append(errs, validateImmutable(class.Scheduling, old.Scheduling, field.NewPath("scheduling"))...)
	return append(errs, ValidateExposureClass(class)...)
}
