package v1beta1

import (
	"fmt"
	"net/mail"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxCommonSuffixes is the most suffixes that CoreDNS rewrites; each costs a rule for every look-up.
	maxCommonSuffixes = 5
	// maxEmailLength is the most characters of an e-mail address.
	maxEmailLength = 254
	// dashboardAuthenticationToken is the only way to log in to the dashboard.
	dashboardAuthenticationToken = "token"
)

var failureTolerances = []FailureToleranceType{FailureToleranceTypeNode, FailureToleranceTypeZone}

var trafficPolicies = []corev1.ServiceExternalTrafficPolicy{
	corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal,
}

func validateDNS(spec *ShootSpec, path *field.Path) field.ErrorList {
	dns := spec.DNS
	if dns == nil {
		return nil
	}
	var errs field.ErrorList
	if dns.Domain != nil {
		errs = append(errs, validateSubdomain(*dns.Domain, path.Child("domain"))...)
	}
	primaries := 0
	for i := range dns.Providers {
		provider, at := &dns.Providers[i], path.Child("providers").Index(i)
		errs = append(errs, validateDNSProvider(provider, at)...)
		if deref(provider.Type) == DNSUnmanaged && len(dns.Providers) > 1 {
			errs = append(errs, field.Invalid(at.Child("type"), DNSUnmanaged, "must be the only provider"))
		}
		if deref(provider.Primary) {
			if primaries++; primaries > 1 {
				errs = append(errs, field.Forbidden(at.Child("primary"), "only one provider can be primary"))
			}
		}
	}
	if len(dns.Providers) > 0 && dns.Domain == nil && deref(dns.Providers[0].Type) != DNSUnmanaged {
		errs = append(errs, field.Required(path.Child("domain"), "name the domain that the providers serve"))
	}
	return errs
}

func validateDNSProvider(provider *DNSProvider, path *field.Path) field.ErrorList {
	errs := validateRequired(deref(provider.Type), path.Child("type"), "name the type of the DNS provider")
	reference := provider.CredentialsRef
	if deref(provider.Type) == DNSUnmanaged {
		errs = append(errs, validateNotSet(provider.SecretName, path.Child("secretName"),
			"has no meaning for domains that others care for")...)
		return append(errs, validateNotSet(reference, path.Child("credentialsRef"),
			"has no meaning for domains that others care for")...)
	}
	if reference == nil {
		return errs
	}
	at := path.Child("credentialsRef")
	if kind := reference.APIVersion + "/" + reference.Kind; !slices.Contains(credentialKinds, kind) {
		errs = append(errs, field.Invalid(at, kind, "must refer to one of "+strings.Join(credentialKinds, ", ")))
	}
	errs = append(errs, validateRequired(reference.Name, at.Child("name"), "name the object with the credentials")...)
	if name := provider.SecretName; name != nil && *name != reference.Name {
		errs = append(errs, field.Invalid(path.Child("secretName"), *name,
			fmt.Sprintf("names another Secret than credentialsRef (%s), which replaces it; leave it out",
				reference.Name)))
	}
	return errs
}

// validateDNSUpdate keeps the domain, and who serves it once there is a seed.
func validateDNSUpdate(spec, old *ShootSpec, path *field.Path) field.ErrorList {
	if old.DNS == nil {
		return nil
	}
	var errs field.ErrorList
	if old.DNS.Domain != nil {
		errs = append(errs, validateImmutable(deref(deref(spec.DNS).Domain), *old.DNS.Domain, path.Child("domain"))...)
	}
	before, _ := primaryProvider(old.DNS)
	if before == nil || old.SeedName == nil {
		return errs
	}
	after, index := primaryProvider(spec.DNS)
	if after == nil {
		return append(errs, field.Required(path.Child("providers"),
			fmt.Sprintf("the primary provider (%s) cannot be removed once the cluster has a seed", deref(before.Type))))
	}
	return append(errs, validateImmutable(deref(after.Type), deref(before.Type),
		path.Child("providers").Index(index).Child("type"))...)
}

func primaryProvider(dns *DNS) (*DNSProvider, int) {
	if dns == nil {
		return nil, 0
	}
	i := slices.IndexFunc(dns.Providers, func(p DNSProvider) bool { return deref(p.Primary) })
	if i < 0 {
		return nil, 0
	}
	return &dns.Providers[i], i
}

func validateControlPlane(controlPlane *ControlPlane, path *field.Path) field.ErrorList {
	if controlPlane == nil {
		return nil
	}
	errs := validateNames(controlPlane.Zones, path.Child("zones"), "name a zone of the seed")
	if controlPlane.HighAvailability == nil {
		return errs
	}
	return append(errs, validateSupported(controlPlane.HighAvailability.FailureTolerance.Type, failureTolerances,
		path.Child("highAvailability", "failureTolerance", "type"))...)
}

func validateSystemComponents(components *SystemComponents, path *field.Path) field.ErrorList {
	if components == nil || components.CoreDNS == nil {
		return nil
	}
	var errs field.ErrorList
	path = path.Child("coreDNS")
	if autoscaling := components.CoreDNS.Autoscaling; autoscaling != nil {
		modes := []CoreDNSAutoscalingMode{CoreDNSAutoscalingModeHorizontal, CoreDNSAutoscalingModeClusterProportional}
		errs = append(errs, validateSupported(autoscaling.Mode, modes, path.Child("autoscaling", "mode"))...)
	}
	if rewriting := components.CoreDNS.Rewriting; rewriting != nil {
		errs = append(errs, validateCommonSuffixes(rewriting.CommonSuffixes,
			path.Child("rewriting", "commonSuffixes"))...)
	}
	return errs
}

func validateCommonSuffixes(suffixes []string, path *field.Path) field.ErrorList {
	if errs := validateCount(len(suffixes), maxCommonSuffixes, path); len(errs) > 0 {
		return errs
	}
	errs := validateUnique(suffixes, func(suffix string) string { return strings.TrimPrefix(suffix, ".") }, path.Index)
	for i, suffix := range suffixes {
		name := strings.TrimPrefix(suffix, ".")
		if !strings.Contains(name, ".") {
			errs = append(errs, field.Invalid(path.Index(i), suffix,
				"must have at least two labels, such as .example.com"))
			continue
		}
		errs = append(errs, validateSubdomain(name, path.Index(i))...)
	}
	return errs
}

func validateMonitoring(monitoring *Monitoring, path *field.Path) field.ErrorList {
	if monitoring == nil || monitoring.Alerting == nil {
		return nil
	}
	at := path.Child("alerting", "emailReceivers")
	errs := validateUniqueStrings(monitoring.Alerting.EmailReceivers, at)
	for i, receiver := range monitoring.Alerting.EmailReceivers {
		if !isEmail(receiver) {
			errs = append(errs, field.Invalid(at.Index(i), receiver,
				"must be an e-mail address such as alice@example.com"))
		}
	}
	return errs
}

func isEmail(value string) bool {
	if len(value) > maxEmailLength {
		return false
	}
	address, err := mail.ParseAddress(value)
	return err == nil && address.Address == value
}

func validateAddons(spec *ShootSpec, path *field.Path) field.ErrorList {
	addons := spec.Addons
	if addons == nil {
		return nil
	}
	var errs field.ErrorList
	dashboard, ingress := deref(addons.KubernetesDashboard), deref(addons.NginxIngress)
	if (dashboard.Enabled || ingress.Enabled) && deref(spec.Purpose) != ShootPurposeEvaluation {
		errs = append(errs, field.Forbidden(path,
			"only possible for purpose "+string(ShootPurposeEvaluation)+
				"; install what you need with a tool of your choice"))
	}
	if dashboard.Enabled {
		errs = append(errs, validateOptionalSupported(dashboard.AuthenticationMode,
			[]string{dashboardAuthenticationToken}, path.Child("kubernetesDashboard", "authenticationMode"))...)
	}
	at := path.Child("nginxIngress")
	errs = append(errs, validateOptionalSupported(ingress.ExternalTrafficPolicy, trafficPolicies,
		at.Child("externalTrafficPolicy"))...)
	for i := range ingress.LoadBalancerSourceRanges {
		errs = append(errs, namedRanges{
			{at.Child("loadBalancerSourceRanges").Index(i), &ingress.LoadBalancerSourceRanges[i]},
		}.validate()...)
	}
	return errs
}
