package v1beta1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Metrics that a Quota can limit, besides cpu and memory.
const (
	QuotaMetricGPU             corev1.ResourceName = "gpu"
	QuotaMetricStorageStandard corev1.ResourceName = "storage.standard"
	QuotaMetricStoragePremium  corev1.ResourceName = "storage.premium"
	QuotaMetricLoadbalancer    corev1.ResourceName = "loadbalancer"
)

var (
	quotaMetrics = []corev1.ResourceName{
		corev1.ResourceCPU, QuotaMetricGPU, corev1.ResourceMemory, QuotaMetricStorageStandard,
		QuotaMetricStoragePremium, QuotaMetricLoadbalancer,
	}
	quotaScopes = []string{
		"core.gardener.cloud/v1beta1/Project", "v1/Secret", "security.gardener.cloud/v1alpha1/WorkloadIdentity",
	}
)

// ValidateQuota checks a Quota on its own.
func ValidateQuota(quota *Quota) field.ErrorList {
	errs := validateMeta(&quota.ObjectMeta, true, apivalidation.NameIsDNSSubdomain)
	spec, path := &quota.Spec, field.NewPath("spec")
	if scope := spec.Scope.APIVersion + "/" + spec.Scope.Kind; !slices.Contains(quotaScopes, scope) {
		errs = append(errs, field.NotSupported(path.Child("scope"), scope, quotaScopes))
	}
	errs = append(errs, validateOptionalAtLeast(spec.ClusterLifetimeDays, 1, path.Child("clusterLifetimeDays"))...)
	for _, name := range sortedKeys(spec.Metrics) {
		at := path.Child("metrics").Key(string(name))
		errs = append(errs, validateSupported(name, quotaMetrics, at)...)
		errs = append(errs, validateNotNegative(spec.Metrics[name], at)...)
	}
	return errs
}

// ValidateQuotaUpdate checks a change of a Quota.
func ValidateQuotaUpdate(quota, old *Quota) field.ErrorList {
	errs := validateMetaUpdate(&quota.ObjectMeta, &old.ObjectMeta)
	errs = append(errs, validateImmutable(quota.Spec.Scope, old.Spec.Scope, field.NewPath("spec", "scope"))...)
	return append(errs, ValidateQuota(quota)...)
}
