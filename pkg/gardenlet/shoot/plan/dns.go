package plan

//lint:file-ignore SA1019 Shoots with older versions of Kubernetes use fields that newer ones must not.

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// planDNS decides about the names of the API server and who serves them. The first address is the one that
// kubeconfigs begin with, so that a name for which nobody here makes a record comes last.
func (p *Plan) planDNS(in *Inputs) error {
	if internal := in.Seed.Spec.DNS.Internal; internal != nil {
		p.Internal = p.record("internal", fmt.Sprintf("api.%s.%s.%s", p.ShootName, p.ProjectName, internal.Domain),
			internal.Type, internal.Zone, internal.CredentialsRef)
	}
	unmanaged, err := p.planExternalDNS(in)
	if err != nil {
		return err
	}
	if p.External != nil {
		p.Addresses = append(p.Addresses, address(gardencorev1beta1.AdvertisedAddressExternal, p.External.Hostname))
	}
	if p.Internal != nil {
		p.Addresses = append(p.Addresses, address(gardencorev1beta1.AdvertisedAddressInternal, p.Internal.Hostname))
	}
	if unmanaged != "" {
		p.Addresses = append(p.Addresses, address(gardencorev1beta1.AdvertisedAddressUnmanaged, unmanaged))
	}
	if len(p.Addresses) == 0 {
		return fmt.Errorf("the seed has no spec.dns.internal and the shoot no spec.dns.domain: its API server would " +
			"have no name")
	}
	return nil
}

// planExternalDNS uses the shoot's own DNS provider, else the seed's default domain that the shoot's domain is in. It
// returns the name for which the shoot's owner makes the record.
func (p *Plan) planExternalDNS(in *Inputs) (unmanaged string, err error) {
	dns := in.Shoot.Spec.DNS
	if dns == nil || ptr.Deref(dns.Domain, "") == "" {
		return "", nil
	}
	hostname := "api." + *dns.Domain
	for _, provider := range dns.Providers {
		switch {
		case ptr.Deref(provider.Type, "") == gardencorev1beta1.DNSUnmanaged:
			return hostname, nil
		case ptr.Deref(provider.Primary, len(dns.Providers) == 1) && provider.Type != nil:
			credentials := p.Credentials
			if ref := provider.CredentialsRef; ref != nil {
				credentials = &corev1.ObjectReference{
					Kind: ref.Kind, APIVersion: ref.APIVersion, Namespace: p.ShootNamespace, Name: ref.Name,
				}
			} else if provider.SecretName != nil {
				credentials = &corev1.ObjectReference{
					Kind: "Secret", APIVersion: "v1", Namespace: p.ShootNamespace, Name: *provider.SecretName,
				}
			}
			if credentials == nil {
				return "", fmt.Errorf("spec.dns.providers: provider %q has no credentials", *provider.Type)
			}
			p.External = p.record("external", hostname, *provider.Type, nil, *credentials)
			return "", nil
		}
	}
	for _, domain := range in.Seed.Spec.DNS.Defaults {
		if strings.HasSuffix(*dns.Domain, "."+domain.Domain) {
			p.External = p.record("external", hostname, domain.Type, domain.Zone, domain.CredentialsRef)
			return "", nil
		}
	}
	return "", fmt.Errorf("spec.dns.domain %q is in none of the seed's default domains, and spec.dns.providers "+
		"names no primary provider for it", *dns.Domain)
}

// record plans one DNS record that leads to the seed's gateway.
func (p *Plan) record(purpose, hostname, providerType string, zone *string,
	credentials corev1.ObjectReference) *Record {
	return &Record{
		Name: p.ShootName + "-" + purpose, SecretName: "dnsrecord-" + p.ShootName + "-" + purpose,
		Hostname: hostname, Type: providerType, Zone: zone, Credentials: credentials,
		RecordType: extensionsv1alpha1.DNSRecordType(p.Gateway.RecordType()), Value: p.Gateway.Address,
	}
}

// address is what users are told about a name of the API server.
func address(name, hostname string) gardencorev1beta1.ShootAdvertisedAddress {
	return gardencorev1beta1.ShootAdvertisedAddress{Name: name, URL: "https://" + hostname}
}

// Hostname is where machines reach the API server.
func (p *Plan) Hostname() string {
	if p.Internal != nil {
		return p.Internal.Hostname
	}
	return p.hostnames()[0]
}

// hostnames are those of the addresses.
func (p *Plan) hostnames() []string {
	names := make([]string, 0, len(p.Addresses))
	for _, a := range p.Addresses {
		names = append(names, strings.TrimPrefix(a.URL, "https://"))
	}
	return names
}
