package v1beta1

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateSecretBinding checks a SecretBinding on its own.
func ValidateSecretBinding(binding *SecretBinding) field.ErrorList {
	errs := validateMeta(&binding.ObjectMeta, true, apivalidation.NameIsDNSSubdomain)
	errs = append(errs, validateRequired(binding.SecretRef.Name, field.NewPath("secretRef", "name"),
		"name the Secret with the credentials")...)
	path := field.NewPath("provider")
	if binding.Provider == nil {
		return append(errs, field.Required(path, "name the provider that the credentials are for"))
	}
	for _, one := range strings.Split(binding.Provider.Type, ",") {
		errs = append(errs, validateRequired(one, path.Child("type"),
			"name the type of the provider; several are separated by commas")...)
	}
	for i, quota := range binding.Quotas {
		errs = append(errs, validateRequired(quota.Name, field.NewPath("quotas").Index(i).Child("name"),
			"name the Quota")...)
	}
	return errs
}

// ValidateSecretBindingUpdate checks a change of a SecretBinding.
func ValidateSecretBindingUpdate(binding, old *SecretBinding) field.ErrorList {
	errs := validateMetaUpdate(&binding.ObjectMeta, &old.ObjectMeta)
	errs = append(errs, validateImmutable(binding.SecretRef, old.SecretRef, field.NewPath("secretRef"))...)
	errs = append(errs, validateImmutable(binding.Quotas, old.Quotas, field.NewPath("quotas"))...)
	errs = append(errs, validateImmutableOnceSet(binding.Provider, old.Provider, field.NewPath("provider"))...)
	return append(errs, ValidateSecretBinding(binding)...)
}
