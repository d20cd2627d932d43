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
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserver/reservation"
)

// ShootDNSName is the name of the plugin that gives shoots domains, each its own.
const ShootDNSName = "ShootDNS"

// shootDNS names a shoot below the default domain of its seed, and refuses domains that belong to somebody else.
type shootDNS struct {
	*admission.Handler
	dependent
}

var (
	_ admission.MutationInterface   = &shootDNS{}
	_ admission.ValidationInterface = &shootDNS{}
)

func newShootDNS() *shootDNS {
	return &shootDNS{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Admit implements admission.MutationInterface.
func (s *shootDNS) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, _, ok := changedShoot(a)
	if !ok || shoot.Spec.SeedName == nil {
		return nil
	}
	seed, err := get[*gardencorev1beta1.Seed](ctx, s.Reader, gardencorev1beta1.Resource("seeds"), "",
		*shoot.Spec.SeedName)
	if isMissing(err) {
		return nil // refused by ShootValidator
	}
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	project, err := projectOf(ctx, s.Reader, shoot.Namespace)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if project != nil {
		completeDomain(shoot, project.Name, seed)
	}
	markPrimaryProvider(shoot, seed)
	return nil
}

// completeDomain gives the shoot a name below the seed's first default domain.
func completeDomain(shoot *gardencorev1beta1.Shoot, project string, seed *gardencorev1beta1.Seed) {
	if domainOf(shoot) != "" || len(seed.Spec.DNS.Defaults) == 0 {
		return
	}
	if shoot.Spec.DNS == nil {
		shoot.Spec.DNS = &gardencorev1beta1.DNS{}
	}
	shoot.Spec.DNS.Domain = new(generatedDomain(shoot.Name, project, seed.Spec.DNS.Defaults[0].Domain))
}

func generatedDomain(shoot, project, domain string) string {
	return shoot + "." + project + "." + domain
}

func domainOf(shoot *gardencorev1beta1.Shoot) string {
	if shoot.Spec.DNS == nil {
		return ""
	}
	return ptr.Deref(shoot.Spec.DNS.Domain, "")
}

// markPrimaryProvider makes the first DNS provider the one of the shoot's own domain, unless that is a default domain
// or another provider is primary.
func markPrimaryProvider(shoot *gardencorev1beta1.Shoot, seed *gardencorev1beta1.Seed) {
	domain := domainOf(shoot)
	if domain == "" || len(shoot.Spec.DNS.Providers) == 0 ||
		defaultDomainAbove(domain, []*gardencorev1beta1.Seed{seed}) != "" {
		return
	}
	if !slices.ContainsFunc(shoot.Spec.DNS.Providers,
		func(p gardencorev1beta1.DNSProvider) bool { return ptr.Deref(p.Primary, false) }) {
		shoot.Spec.DNS.Providers[0].Primary = new(true)
	}
}

// defaultDomainAbove returns the default domain of one of the seeds that a domain lies below.
func defaultDomainAbove(domain string, seeds []*gardencorev1beta1.Seed) string {
	for _, seed := range seeds {
		for _, provider := range seed.Spec.DNS.Defaults {
			if strings.HasSuffix(domain, "."+provider.Domain) {
				return provider.Domain
			}
		}
	}
	return ""
}

// Validate implements admission.ValidationInterface.
func (s *shootDNS) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, old, ok := changedShoot(a)
	if !ok || domainOf(shoot) == "" || (old != nil && domainOf(old) == domainOf(shoot)) {
		return nil
	}
	return s.validateDomain(ctx, a, shoot)
}

// domainsScope is where domains are claimed that shoots choose themselves. It is one for all, since a domain also
// excludes those above and below it.
const domainsScope = "domains"

// validateDomain checks a new domain. Below default domains every shoot has its own name by construction; only other
// domains have to be compared with those of all shoots.
func (s *shootDNS) validateDomain(ctx context.Context, a admission.Attributes, shoot *gardencorev1beta1.Shoot) error {
	project, err := projectOf(ctx, s.Reader, shoot.Namespace)
	if err != nil || project == nil {
		return respond(a, nil, err)
	}
	if generated, err := s.isGenerated(ctx, shoot, project.Name); err != nil || generated {
		return respond(a, nil, err)
	}
	seeds, err := list[*gardencorev1beta1.Seed](ctx, s.Reader, gardencorev1beta1.Resource("seeds"), "",
		fields.Everything())
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if above := defaultDomainAbove(domainOf(shoot), seeds); above != "" {
		return invalid(a, validateDefaultDomain(shoot, project.Name, above))
	}
	claim := reservation.Claim{Owner: nameOf(shoot), Value: domainOf(shoot)}
	return s.reserve(ctx, a, domainsScope, claim, func(ctx context.Context, claims []reservation.Claim) error {
		shoots, err := list[*gardencorev1beta1.Shoot](ctx, s.Reader, gardencorev1beta1.Resource("shoots"), "",
			fields.Everything())
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		taken := append(domainsOfOthers(shoot, shoots), claimedDomains(byOthers(claims, nameOf(shoot)))...)
		return invalid(a, validateDomainIsFree(domainOf(shoot), taken, seeds))
	})
}

// domainsOfOthers returns the domains of all shoots but one.
func domainsOfOthers(shoot *gardencorev1beta1.Shoot, shoots []*gardencorev1beta1.Shoot) []string {
	var domains []string
	for _, other := range shoots {
		if other.Namespace != shoot.Namespace || other.Name != shoot.Name {
			domains = append(domains, domainOf(other))
		}
	}
	return domains
}

func claimedDomains(claims []reservation.Claim) []string {
	var domains []string
	for _, claim := range claims {
		domains = append(domains, claim.Value)
	}
	return domains
}

// isGenerated recognises the domain that a shoot has from its seed, without looking at anything else.
func (s *shootDNS) isGenerated(ctx context.Context, shoot *gardencorev1beta1.Shoot, project string) (bool, error) {
	if shoot.Spec.SeedName == nil {
		return false, nil
	}
	seed, err := get[*gardencorev1beta1.Seed](ctx, s.Reader, gardencorev1beta1.Resource("seeds"), "",
		*shoot.Spec.SeedName)
	if err != nil {
		if isMissing(err) {
			return false, nil
		}
		return false, err
	}
	above := defaultDomainAbove(domainOf(shoot), []*gardencorev1beta1.Seed{seed})
	return above != "" && domainOf(shoot) == generatedDomain(shoot.Name, project, above), nil
}

var domainPath = field.NewPath("spec", "dns", "domain")

func validateDefaultDomain(shoot *gardencorev1beta1.Shoot, project, above string) field.ErrorList {
	if wanted := generatedDomain(shoot.Name, project, above); domainOf(shoot) != wanted {
		return field.ErrorList{
			field.Invalid(domainPath, domainOf(shoot),
				fmt.Sprintf("below the garden's domain %s this shoot can only have %s: leave the field out, or use "+
					"a domain of your own", above, wanted)),
		}
	}
	return nil
}

// validateDomainIsFree makes sure that no other cluster lives at, above or below a domain.
func validateDomainIsFree(domain string, taken []string, seeds []*gardencorev1beta1.Seed) field.ErrorList {
	if slices.ContainsFunc(taken, func(other string) bool { return domainsMeet(domain, other) }) {
		// The message names nobody: the other shoot may belong to people that the caller must not know of.
		return field.ErrorList{
			field.Forbidden(domainPath, fmt.Sprintf("%s is, or lies above or below, the domain of another shoot: "+
				"choose another", domain)),
		}
	}
	for _, seed := range seeds {
		for _, taken := range domainsOfSeed(seed) {
			if domainsMeet(domain, taken) {
				return field.ErrorList{
					field.Forbidden(domainPath, fmt.Sprintf("%s meets %s, which the garden uses itself: choose another",
						domain, taken)),
				}
			}
		}
	}
	return nil
}

func domainsOfSeed(seed *gardencorev1beta1.Seed) []string {
	var domains []string
	if seed.Spec.DNS.Internal != nil {
		domains = append(domains, seed.Spec.DNS.Internal.Domain)
	}
	if seed.Spec.Ingress != nil {
		domains = append(domains, seed.Spec.Ingress.Domain)
	}
	for _, provider := range seed.Spec.DNS.Defaults {
		domains = append(domains, provider.Domain)
	}
	return domains
}

// domainsMeet tells whether two domains are the same or one lies below the other.
func domainsMeet(a, b string) bool {
	return a != "" && b != "" && (a == b || strings.HasSuffix(a, "."+b) || strings.HasSuffix(b, "."+a))
}
