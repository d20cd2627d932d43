package v1alpha1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of TokenRequest.spec.expirationSeconds.
const (
	MinTokenExpirationSeconds int64 = 600
	MaxTokenExpirationSeconds int64 = 1 << 32
)

// ValidateTokenRequest checks a TokenRequest on its own.
func ValidateTokenRequest(request *TokenRequest) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if seconds := request.Spec.ExpirationSeconds; seconds != nil &&
		(*seconds < MinTokenExpirationSeconds || *seconds > MaxTokenExpirationSeconds) {
		errs = append(errs, field.Invalid(spec.Child("expirationSeconds"), *seconds,
			fmt.Sprintf("must be between %d and %d", MinTokenExpirationSeconds, MaxTokenExpirationSeconds)))
	}
	if request.Spec.ContextObject != nil {
		errs = append(errs, validateContextObject(request.Spec.ContextObject, spec.Child("contextObject"))...)
	}
	return errs
}

func validateContextObject(object *ContextObject, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if object.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), "such as Shoot"))
	}
	if object.APIVersion == "" {
		errs = append(errs, field.Required(path.Child("apiVersion"), "such as core.gardener.cloud/v1beta1"))
	}
	if object.UID == "" {
		errs = append(errs, field.Required(path.Child("uid"), "give the UID of the object"))
	}
	for _, message := range validation.IsDNS1123Subdomain(object.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), object.Name, message))
	}
	switch hasNamespace := object.Namespace != nil && *object.Namespace != ""; {
	case hasNamespace:
		for _, message := range validation.IsDNS1123Label(*object.Namespace) {
			errs = append(errs, field.Invalid(path.Child("namespace"), *object.Namespace, message))
		}
	case object.Kind == "Shoot" || object.Kind == "BackupEntry":
		errs = append(errs, field.Required(path.Child("namespace"), "name the namespace of the "+object.Kind))
	}
	return errs
}
