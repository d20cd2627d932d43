package v1beta1

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// namedRange is a range of addresses with the field that holds it. A range that is not set, or not well-formed,
// overlaps with none.
// +k8s:openapi-gen=false
type namedRange struct {
	path *field.Path
	cidr *string
}

func (r namedRange) prefix() (netip.Prefix, bool) {
	if r.cidr == nil || *r.cidr == "" {
		return netip.Prefix{}, false
	}
	prefix, err := netip.ParsePrefix(*r.cidr)
	return prefix, err == nil
}

type namedRanges []namedRange

// validate checks that every range that is set is well-formed.
func (r namedRanges) validate() field.ErrorList {
	var errs field.ErrorList
	for _, one := range r {
		if one.cidr == nil || *one.cidr == "" {
			continue
		}
		prefix, ok := one.prefix()
		if !ok {
			errs = append(errs, field.Invalid(one.path, *one.cidr,
				"must be a range in CIDR notation, such as 10.3.0.0/16"))
		} else if masked := prefix.Masked(); masked != prefix {
			errs = append(errs, field.Invalid(one.path, *one.cidr,
				fmt.Sprintf("must be the first address of the range: %s", masked)))
		}
	}
	return errs
}

// validateDisjoint reports every range that overlaps with an earlier one.
func (r namedRanges) validateDisjoint() field.ErrorList { return r.validateDisjointFrom(1) }

// validateDisjointFrom is validateDisjoint for the ranges from an index on.
func (r namedRanges) validateDisjointFrom(first int) field.ErrorList {
	var errs field.ErrorList
	for i := first; i < len(r); i++ {
		for _, earlier := range r[:i] {
			a, aOK := r[i].prefix()
			b, bOK := earlier.prefix()
			if aOK && bOK && a.Overlaps(b) {
				errs = append(errs, field.Invalid(r[i].path, *r[i].cidr,
					fmt.Sprintf("overlaps with %s (%s); the ranges must be disjoint", earlier.path, b)))
			}
		}
	}
	return errs
}

// validateFamily checks that the ranges are of the first family, that of single-stack ranges.
func (r namedRanges) validateFamily(families []IPFamily) field.ErrorList {
	if len(families) != 1 {
		return nil
	}
	var errs field.ErrorList
	for _, one := range r {
		if prefix, ok := one.prefix(); ok && prefix.Addr().Is4() != (families[0] == IPFamilyIPv4) {
			errs = append(errs, field.Invalid(one.path, *one.cidr,
				fmt.Sprintf("must be a range of %s addresses, as ipFamilies says", families[0])))
		}
	}
	return errs
}

func validateIPFamilies(families []IPFamily, path *field.Path) field.ErrorList {
	errs := validateUnique(families, itself, path.Index)
	for i, family := range families {
		errs = append(errs, validateSupported(family, []IPFamily{IPFamilyIPv4, IPFamilyIPv6}, path.Index(i))...)
	}
	return errs
}
