package v1beta1

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	certutil "k8s.io/client-go/util/cert"
)

// What validators of several kinds share. Every error names the field and says what would be right.

func validateMeta(meta *metav1.ObjectMeta, namespaced bool, name apivalidation.ValidateNameFunc) field.ErrorList {
	return apivalidation.ValidateObjectMeta(meta, namespaced, name, field.NewPath("metadata"))
}

func validateMetaUpdate(meta, old *metav1.ObjectMeta) field.ErrorList {
	return apivalidation.ValidateObjectMetaUpdate(meta, old, field.NewPath("metadata"))
}

// validateImmutable refuses a change.
func validateImmutable[T any](value, old T, path *field.Path) field.ErrorList {
	if apiequality.Semantic.DeepEqual(value, old) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, "cannot be changed; it was "+describe(old))}
}

// validateImmutableOnceSet refuses a change of a value that is there.
func validateImmutableOnceSet[T any](value, old *T, path *field.Path) field.ErrorList {
	if old == nil {
		return nil
	}
	return validateImmutable(value, old, path)
}

// describe shows a value in a message. Structs and nil are left to the reader, who has the old object.
func describe(value any) string {
	switch v := value.(type) {
	case string:
		return fmt.Sprintf("%q", v)
	case *string:
		if v == nil {
			return "not set"
		}
		return fmt.Sprintf("%q", *v)
	case *int32:
		if v == nil {
			return "not set"
		}
		return fmt.Sprint(*v)
	case bool, int, int32, int64:
		return fmt.Sprint(v)
	}
	return "different"
}

func validateSupported[T ~string](value T, supported []T, path *field.Path) field.ErrorList {
	if slices.Contains(supported, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, supported)}
}

func validateNotSet[T any](value *T, path *field.Path, why string) field.ErrorList {
	if value == nil {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, why)}
}

func validateRequired(value string, path *field.Path, what string) field.ErrorList {
	if value != "" {
		return nil
	}
	return field.ErrorList{field.Required(path, what)}
}

// validateUnique reports every item whose key an earlier item has.
func validateUnique[T any, K comparable](items []T, key func(T) K, path func(int) *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[K]bool{}
	for i, item := range items {
		if k := key(item); seen[k] {
			errs = append(errs, field.Duplicate(path(i), k))
		} else {
			seen[k] = true
		}
	}
	return errs
}

func itself[T any](value T) T { return value }

func validateUniqueStrings(values []string, path *field.Path) field.ErrorList {
	return validateUnique(values, itself, path.Index)
}

func validateAtLeast[T cmp.Ordered](value, least T, path *field.Path) field.ErrorList {
	if value >= least {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be at least %v", least))}
}

func validateBetween[T cmp.Ordered](value, least, most T, path *field.Path) field.ErrorList {
	if value >= least && value <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be between %v and %v", least, most))}
}

func validateOptionalBetween[T cmp.Ordered](value *T, least, most T, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	return validateBetween(*value, least, most, path)
}

func validateOptionalAtLeast[T cmp.Ordered](value *T, least T, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	return validateAtLeast(*value, least, path)
}

func validateNotNegative(quantity resource.Quantity, path *field.Path) field.ErrorList {
	if quantity.Sign() >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, quantity.String(), "must not be negative")}
}

// validateCount refuses a list with more items than anybody needs, so that the time that validation takes stays
// bounded.
func validateCount(count, most int, path *field.Path) field.ErrorList {
	if count <= most {
		return nil
	}
	return field.ErrorList{field.TooMany(path, count, most)}
}

// validateOptionalSupported is validateSupported for a value that may be left out.
func validateOptionalSupported[T ~string](value *T, supported []T, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	return validateSupported(*value, supported, path)
}

func validateOptionalQuantity(quantity *resource.Quantity, path *field.Path) field.ErrorList {
	if quantity == nil {
		return nil
	}
	return validateNotNegative(*quantity, path)
}

// validateResourceList accepts amounts of the given resources only; of any when none are given.
func validateResourceList(list corev1.ResourceList, allowed []corev1.ResourceName, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sortedKeys(list) {
		if len(allowed) > 0 {
			errs = append(errs, validateSupported(name, allowed, path.Key(string(name)))...)
		}
		errs = append(errs, validateNotNegative(list[name], path.Key(string(name)))...)
	}
	return errs
}

// validateNames accepts names that are not empty, each once.
func validateNames(names []string, path *field.Path, what string) field.ErrorList {
	errs := validateUniqueStrings(names, path)
	for i, name := range names {
		errs = append(errs, validateRequired(name, path.Index(i), what)...)
	}
	return errs
}

// validateTaintKeys accepts keys of taints, each once.
func validateTaintKeys(keys []string, path *field.Path) field.ErrorList {
	errs := validateUniqueStrings(keys, path)
	for i, key := range keys {
		errs = append(errs, metav1validation.ValidateLabelName(key, path.Index(i))...)
	}
	return errs
}

// validateCertificates accepts certificates in PEM, at least one.
func validateCertificates(bundle *string, path *field.Path) field.ErrorList {
	if bundle == nil {
		return nil
	}
	if _, err := certutil.ParseCertsPEM([]byte(*bundle)); err != nil {
		return field.ErrorList{field.Invalid(path, "", "must be certificates in PEM: "+err.Error())}
	}
	return nil
}

// validateShootRef accepts a reference to a self-hosted shoot.
func validateShootRef(ref *corev1.ObjectReference, path *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	errs := validateSupported(ref.APIVersion, []string{SchemeGroupVersion.String()}, path.Child("apiVersion"))
	errs = append(errs, validateSupported(ref.Kind, []string{"Shoot"}, path.Child("kind"))...)
	errs = append(errs, validateRequired(ref.Name, path.Child("name"), "name the Shoot")...)
	return append(errs, validateRequired(ref.Namespace, path.Child("namespace"), "name the namespace of the Shoot")...)
}

// sortedKeys returns the keys of a map in an order that stays, so that errors come in the same order each time.
func sortedKeys[K cmp.Ordered, V any](values map[K]V) []K { return slices.Sorted(maps.Keys(values)) }

func validateLabel(value string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsDNS1123Label(value) {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

func validateSubdomain(value string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsDNS1123Subdomain(value) {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

func validateSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
}

func validateSeedSelector(selector *SeedSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	errs := validateSelector(&selector.LabelSelector, path)
	return append(errs, validateUniqueStrings(selector.ProviderTypes, path.Child("providerTypes"))...)
}

func validateTolerations(tolerations []Toleration, path *field.Path) field.ErrorList {
	errs := validateUnique(tolerations,
		func(t Toleration) Toleration { return Toleration{Key: t.Key + "=" + deref(t.Value)} }, path.Index)
	for i, toleration := range tolerations {
		errs = append(errs, validateRequired(toleration.Key, path.Index(i).Child("key"),
			"name the key of the taint")...)
	}
	return errs
}

func deref[T any](pointer *T) T {
	if pointer == nil {
		var zero T
		return zero
	}
	return *pointer
}

func validateExtensions(extensions []Extension, path *field.Path) field.ErrorList {
	errs := validateUnique(extensions, func(e Extension) string { return e.Type },
		func(i int) *field.Path { return path.Index(i).Child("type") })
	for i, extension := range extensions {
		errs = append(errs, validateRequired(extension.Type, path.Index(i).Child("type"),
			"name the type of the extension")...)
	}
	return errs
}

func validateResources(resources []NamedResourceReference, path *field.Path) field.ErrorList {
	errs := validateUnique(resources, func(r NamedResourceReference) string { return r.Name },
		func(i int) *field.Path { return path.Index(i).Child("name") })
	for i, resource := range resources {
		at := path.Index(i)
		errs = append(errs, validateRequired(resource.Name, at.Child("name"),
			"name the resource so that others can refer to it")...)
		reference := at.Child("resourceRef")
		errs = append(errs, validateRequired(resource.ResourceRef.Kind, reference.Child("kind"),
			"such as Secret or ConfigMap")...)
		errs = append(errs, validateRequired(resource.ResourceRef.Name, reference.Child("name"), "name the object")...)
		errs = append(errs, validateRequired(resource.ResourceRef.APIVersion, reference.Child("apiVersion"),
			"such as v1")...)
	}
	return errs
}

func validateAccessRestrictions(names []string, path *field.Path) field.ErrorList {
	at := func(i int) *field.Path { return path.Index(i).Child("name") }
	errs := validateUnique(names, itself, at)
	for i, name := range names {
		errs = append(errs, validateRequired(name, at(i), "name the restriction")...)
	}
	return errs
}

// validateCredentialsRef accepts a reference to one of the kinds, given as <apiVersion>/<kind>.
func validateCredentialsRef(ref *corev1.ObjectReference, kinds []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if got := ref.APIVersion + "/" + ref.Kind; !slices.Contains(kinds, got) {
		errs = append(errs, field.Invalid(path, got, "must refer to one of "+strings.Join(kinds, ", ")))
	}
	errs = append(errs, validateRequired(ref.Name, path.Child("name"), "name the object with the credentials")...)
	return append(errs, validateRequired(ref.Namespace, path.Child("namespace"),
		"name the namespace of the credentials")...)
}

// credentialKinds are what BackupBuckets and Seeds may take credentials from.
var credentialKinds = []string{"v1/Secret", "security.gardener.cloud/v1alpha1/WorkloadIdentity"}

// validateVersion accepts a full version such as 1.36.3.
func validateVersion(version string, path *field.Path) field.ErrorList {
	if version == "" {
		return field.ErrorList{field.Required(path, "a full version such as 1.36.3")}
	}
	if _, err := semver.StrictNewVersion(version); err != nil {
		return field.ErrorList{field.Invalid(path, version, "must be a full semantic version such as 1.36.3")}
	}
	return nil
}

// validateSeedOrShoot accepts exactly one of a seed and a self-hosted shoot.
func validateSeedOrShoot(seed, shoot bool, path *field.Path, seedField string) field.ErrorList {
	switch {
	case seed && shoot:
		return field.ErrorList{field.Forbidden(path.Child("shootRef"), "cannot be set together with "+seedField)}
	case !seed && !shoot:
		return field.ErrorList{field.Required(path.Child(seedField), "either "+seedField+" or shootRef has to be set")}
	}
	return nil
}
