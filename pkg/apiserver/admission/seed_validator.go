package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// SeedValidatorName is the name of the plugin that keeps on seeds what their shoots need.
const SeedValidatorName = "SeedValidator"

// seedValidator refuses to take zones and default domains from a seed that shoots run in and are called by.
type seedValidator struct {
	*admission.Handler
	dependent
}

var _ admission.ValidationInterface = &seedValidator{}

func newSeedValidator() *seedValidator {
	return &seedValidator{Handler: admission.NewHandler(admission.Update)}
}

// Validate implements admission.ValidationInterface.
func (s *seedValidator) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	seed, old, ok := written[*gardencorev1beta1.Seed](a)
	if !ok || old == nil || len(removedZones(seed, old))+len(removedDomains(seed, old)) == 0 {
		return nil
	}
	shoots, err := list[*gardencorev1beta1.Shoot](ctx, s.Reader, gardencorev1beta1.Resource("shoots"), "",
		fields.OneTermEqualSelector("spec.seedName", seed.Name))
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return invalid(a, validateSeedRemovals(seed, old, shoots))
}

func removedZones(seed, old *gardencorev1beta1.Seed) []string {
	return slices.DeleteFunc(slices.Clone(old.Spec.Provider.Zones),
		func(zone string) bool { return slices.Contains(seed.Spec.Provider.Zones, zone) })
}

// removedDomains returns the default domains that an update removes.
func removedDomains(seed, old *gardencorev1beta1.Seed) []string {
	var removed []string
	for _, before := range old.Spec.DNS.Defaults {
		if !slices.ContainsFunc(seed.Spec.DNS.Defaults,
			func(d gardencorev1beta1.SeedDNSProviderConfig) bool { return d.Domain == before.Domain }) {
			removed = append(removed, before.Domain)
		}
	}
	return removed
}

// validateSeedRemovals checks what is removed from a seed against the shoots that are assigned to it.
func validateSeedRemovals(seed, old *gardencorev1beta1.Seed, shoots []*gardencorev1beta1.Shoot) field.ErrorList {
	var errs field.ErrorList
	if zones := removedZones(seed, old); len(zones) > 0 && len(shoots) > 0 {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "provider", "zones"),
			fmt.Sprintf("%s cannot be removed: control planes run there, those of %s", strings.Join(zones, ", "),
				summary(names("shoot", shoots)))))
	}
	for _, domain := range removedDomains(seed, old) {
		called := slices.DeleteFunc(slices.Clone(shoots),
			func(shoot *gardencorev1beta1.Shoot) bool { return !strings.HasSuffix(domainOf(shoot), "."+domain) })
		if len(called) > 0 {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "dns", "defaults"),
				fmt.Sprintf("%s cannot be removed: it is in the names of %s", domain, summary(names("shoot", called)))))
		}
	}
	return errs
}
