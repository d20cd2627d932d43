package v1beta1

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateInternalSecret checks an InternalSecret on its own, as a Secret is checked.
func ValidateInternalSecret(secret *InternalSecret) field.ErrorList {
	errs := validateMeta(&secret.ObjectMeta, true, apivalidation.NameIsDNSSubdomain)
	path := field.NewPath("data")
	size := 0
	for _, key := range sortedKeys(secret.Data) {
		for _, message := range validation.IsConfigMapKey(key) {
			errs = append(errs, field.Invalid(path.Key(key), key, message))
		}
		size += len(secret.Data[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.Invalid(path, fmt.Sprintf("%d bytes", size), fmt.Sprintf("must have at most %d bytes", corev1.MaxSecretSize)))
	}
	return errs
}

// ValidateInternalSecretUpdate checks a change of an InternalSecret.
func ValidateInternalSecretUpdate(secret, old *InternalSecret) field.ErrorList {
	errs := validateMetaUpdate(&secret.ObjectMeta, &old.ObjectMeta)
	errs = append(errs, validateImmutable(string(secret.Type), string(old.Type), field.NewPath("type"))...)
	if deref(old.Immutable) {
		if !deref(secret.Immutable) {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), "cannot be unset; create another InternalSecret instead"))
		}
		if len(validateImmutable(secret.Data, old.Data, nil)) > 0 {
			errs = append(errs, field.Forbidden(field.NewPath("data"), "cannot be changed because immutable is set"))
		}
	}
	return append(errs, ValidateInternalSecret(secret)...)
}
