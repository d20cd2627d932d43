package v1alpha1

import (
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxSubjectLength is the most characters of the subject of tokens.
const maxSubjectLength = 255

var credentialKinds = []string{
	"v1/Secret", GroupName + "/v1alpha1/WorkloadIdentity", "core.gardener.cloud/v1beta1/InternalSecret",
}

// ValidateCredentialsBinding checks a CredentialsBinding on its own.
func ValidateCredentialsBinding(binding *CredentialsBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&binding.ObjectMeta, true, apivalidation.NameIsDNSSubdomain,
		field.NewPath("metadata"))
	provider := field.NewPath("provider", "type")
	if binding.Provider.Type == "" {
		errs = append(errs, field.Required(provider, "name the provider that the credentials are for"))
	} else if strings.Contains(binding.Provider.Type, ",") {
		errs = append(errs, field.Invalid(provider, binding.Provider.Type,
			"must be one provider; create a binding for each"))
	}
	ref := field.NewPath("credentialsRef")
	if kind := binding.CredentialsRef.APIVersion + "/" + binding.CredentialsRef.Kind; !slices.Contains(credentialKinds,
		kind) {
		errs = append(errs, field.Invalid(ref, kind, "must refer to one of "+strings.Join(credentialKinds, ", ")))
	}
	if binding.CredentialsRef.Name == "" {
		errs = append(errs, field.Required(ref.Child("name"), "name the object with the credentials"))
	}
	if binding.CredentialsRef.Namespace == "" {
		errs = append(errs, field.Required(ref.Child("namespace"), "name the namespace of the credentials"))
	}
	for i, quota := range binding.Quotas {
		if quota.Name == "" {
			errs = append(errs, field.Required(field.NewPath("quotas").Index(i).Child("name"), "name the Quota"))
		}
	}
	return errs
}

// ValidateCredentialsBindingUpdate checks a change of a CredentialsBinding.
func ValidateCredentialsBindingUpdate(binding, old *CredentialsBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&binding.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, immutable(binding.Provider, old.Provider, field.NewPath("provider"))...)
	errs = append(errs, immutable(binding.CredentialsRef, old.CredentialsRef, field.NewPath("credentialsRef"))...)
	errs = append(errs, immutable(binding.Quotas, old.Quotas, field.NewPath("quotas"))...)
	return append(errs, ValidateCredentialsBinding(binding)...)
}

// ValidateWorkloadIdentity checks a WorkloadIdentity on its own.
func ValidateWorkloadIdentity(identity *WorkloadIdentity) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&identity.ObjectMeta, true, apivalidation.NameIsDNSSubdomain,
		field.NewPath("metadata"))
	spec := field.NewPath("spec")
	audiences := spec.Child("audiences")
	if len(identity.Spec.Audiences) == 0 {
		errs = append(errs, field.Required(audiences, "name at least one audience of the tokens"))
	}
	seen := sets.New[string]()
	for i, audience := range identity.Spec.Audiences {
		if audience == "" {
			errs = append(errs, field.Required(audiences.Index(i), "must not be empty"))
		} else if seen.Has(audience) {
			errs = append(errs, field.Duplicate(audiences.Index(i), audience))
		}
		seen.Insert(audience)
	}
	if identity.Spec.TargetSystem.Type == "" {
		errs = append(errs, field.Required(spec.Child("targetSystem", "type"),
			"name the system that trusts the tokens"))
	}
	if len(identity.Status.Sub) > maxSubjectLength {
		errs = append(errs, field.TooLong(field.NewPath("status", "sub"), identity.Status.Sub, maxSubjectLength))
	}
	return errs
}

// ValidateWorkloadIdentityUpdate checks a change of a WorkloadIdentity.
func ValidateWorkloadIdentityUpdate(identity, old *WorkloadIdentity) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&identity.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, immutable(identity.Spec.TargetSystem.Type, old.Spec.TargetSystem.Type,
		field.NewPath("spec", "targetSystem", "type"))...)
	if old.Status.Sub != "" {
		errs = append(errs, immutable(identity.Status.Sub, old.Status.Sub, field.NewPath("status", "sub"))...)
	}
	return append(errs, ValidateWorkloadIdentity(identity)...)
}

func immutable(value, old any, path *field.Path) field.ErrorList {
	if apiequality.Semantic.DeepEqual(value, old) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, "cannot be changed; create another object instead")}
}
