package v1

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	digestPrefix = "sha256:"
	// maxQuotationErrors is how many mistakes in values are told at once.
	maxQuotationErrors = 20
)

var (
	resourceName = regexp.MustCompile(`^[a-zA-Z0-9]+$`)
	// quotation is what values may hold of a resource; its groups are the name of the resource and the key of its data.
	quotation = regexp.MustCompile(`^\{\{\s*\.resources\.([a-zA-Z0-9]+)\.data\.([-._a-zA-Z0-9]+)\s*\}\}$`)
	// template is anything in double braces.
	template = regexp.MustCompile(`\{\{[^{}]*\}\}`)
)

// ValidateControllerDeployment checks a ControllerDeployment on its own.
func ValidateControllerDeployment(deployment *ControllerDeployment) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&deployment.ObjectMeta, false, apivalidation.NameIsDNSSubdomain,
		field.NewPath("metadata"))
	errs = append(errs, validateResources(deployment.Resources, field.NewPath("resources"))...)
	if deployment.Helm != nil {
		return append(errs, validateHelm(deployment.Helm, deployment.Resources, field.NewPath("helm"))...)
	}
	if deployment.Annotations[MigrationType] == "" {
		errs = append(errs, field.Required(field.NewPath("helm"),
			"say how the extension is deployed: with rawChart or ociRepository"))
	}
	return errs
}

// ValidateControllerDeploymentUpdate checks a change of a ControllerDeployment.
func ValidateControllerDeploymentUpdate(deployment, old *ControllerDeployment) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&deployment.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, ValidateControllerDeployment(deployment)...)
}

func validateHelm(helm *HelmControllerDeployment, resources []gardencorev1beta1.NamedResourceReference,
	path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch hasChart, hasRepository := len(helm.RawChart) > 0, helm.OCIRepository != nil; {
	case hasChart && hasRepository:
		errs = append(errs, field.Forbidden(path.Child("ociRepository"), "cannot be set together with rawChart"))
	case !hasChart && !hasRepository:
		errs = append(errs, field.Required(path.Child("rawChart"),
			"give the chart itself, or ociRepository to pull it from"))
	case hasRepository:
		errs = append(errs, ValidateOCIRepository(helm.OCIRepository, path.Child("ociRepository"))...)
	}
	if helm.Values != nil {
		errs = append(errs, validateValues(helm.Values.Raw, resources, path.Child("values"))...)
	}
	return errs
}

// ValidateOCIRepository checks where an artifact is pulled from, wherever it is written.
func ValidateOCIRepository(repository *OCIRepository, path *field.Path) field.ErrorList {
	errs := validateSecretRef(repository.PullSecretRef, path.Child("pullSecretRef"))
	errs = append(errs, validateSecretRef(repository.CABundleSecretRef, path.Child("caBundleSecretRef"))...)
	if isSet(repository.Ref) {
		return append(errs, validateOnlyRef(repository, path)...)
	}
	if !isSet(repository.Repository) {
		return append(errs, field.Required(path.Child("ref"),
			"give the whole reference, or repository with tag or digest"))
	}
	if !isSet(repository.Tag) && !isSet(repository.Digest) {
		errs = append(errs, field.Required(path.Child("tag"), "give the tag or the digest"))
	}
	if isSet(repository.Digest) && !strings.HasPrefix(*repository.Digest, digestPrefix) {
		errs = append(errs, field.Invalid(path.Child("digest"), *repository.Digest, "must begin with "+digestPrefix))
	}
	return errs
}

func isSet(value *string) bool { return value != nil && *value != "" }

func validateOnlyRef(repository *OCIRepository, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	others := map[string]*string{
		"repository": repository.Repository, "tag": repository.Tag, "digest": repository.Digest,
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if isSet(others[name]) {
			errs = append(errs, field.Forbidden(path.Child(name),
				"cannot be set together with ref, which names all of it"))
		}
	}
	return errs
}

func validateSecretRef(reference *corev1.LocalObjectReference, path *field.Path) field.ErrorList {
	if reference == nil {
		return nil
	}
	if reference.Name == "" {
		return field.ErrorList{field.Required(path.Child("name"), "name the Secret")}
	}
	return invalid(path.Child("name"), reference.Name, validation.IsDNS1123Subdomain(reference.Name))
}

func invalid(path *field.Path, value string, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

// validateResources accepts Secrets and ConfigMaps with names that templates can hold.
func validateResources(resources []gardencorev1beta1.NamedResourceReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, resource := range resources {
		at := path.Index(i)
		switch {
		case !resourceName.MatchString(resource.Name):
			errs = append(errs, field.Invalid(at.Child("name"), resource.Name,
				"must consist of letters and digits, so that values can quote it"))
		case seen[resource.Name]:
			errs = append(errs, field.Duplicate(at.Child("name"), resource.Name))
		}
		seen[resource.Name] = true
		reference := at.Child("resourceRef")
		if kind := resource.ResourceRef.APIVersion + "/" + resource.ResourceRef.Kind; kind != "v1/Secret" &&
			kind != "v1/ConfigMap" {
			errs = append(errs, field.NotSupported(reference, kind, []string{"v1/ConfigMap", "v1/Secret"}))
		}
		errs = append(errs, invalid(reference.Child("name"), resource.ResourceRef.Name,
			validation.IsDNS1123Subdomain(resource.ResourceRef.Name))...)
	}
	return errs
}

// validateValues checks what the strings among values quote.
func validateValues(raw []byte, resources []gardencorev1beta1.NamedResourceReference,
	path *field.Path) field.ErrorList {
	var values any
	if err := json.Unmarshal(raw, &values); err != nil {
		return field.ErrorList{field.Invalid(path, "<value omitted>", "must be JSON: "+err.Error())}
	}
	switch values.(type) {
	case map[string]any, nil:
	default:
		return field.ErrorList{field.Invalid(path, "<value omitted>", "must be an object")}
	}
	known := map[string]bool{}
	for _, resource := range resources {
		known[resource.Name] = true
	}
	var errs field.ErrorList
	eachString(values, path, func(text string, at *field.Path) bool {
		errs = append(errs, validateQuotations(text, known, at)...)
		return len(errs) < maxQuotationErrors
	})
	return errs
}

// eachString visits the strings of a JSON value with their paths, in an order that stays, until told to stop.
func eachString(value any, path *field.Path, visit func(string, *field.Path) bool) bool {
	switch v := value.(type) {
	case string:
		return visit(v, path)
	case []any:
		for i, item := range v {
			if !eachString(item, path.Index(i), visit) {
				return false
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if !eachString(v[key], path.Child(key), visit) {
				return false
			}
		}
	}
	return true
}

func validateQuotations(text string, known map[string]bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, found := range template.FindAllString(text, maxQuotationErrors) {
		match := quotation.FindStringSubmatch(found)
		switch {
		case match == nil:
			errs = append(errs, field.Invalid(path, found, "must be of the form {{ .resources.<name>.data.<key> }}"))
		case !known[match[1]]:
			errs = append(errs, field.Invalid(path, found,
				fmt.Sprintf("quotes %q, which is not among resources", match[1])))
		}
	}
	rest := template.ReplaceAllString(text, "")
	if strings.Contains(rest, "{{") || strings.Contains(rest, "}}") {
		errs = append(errs, field.Invalid(path, rest,
			"double braces must enclose a quotation: {{ .resources.<name>.data.<key> }}"))
	}
	return errs
}
