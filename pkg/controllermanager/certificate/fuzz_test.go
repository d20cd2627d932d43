package certificate

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/trellis-garden/trellis/test/certrequest"
)

// FuzzSeedOf tries requests as bytes, and as fields of which a request is made: whatever is granted must be the client
// certificate of one seed, for a bootstrap token or for that seed; and what would make somebody a seed is never left to
// others.
func FuzzSeedOf(f *testing.F) {
	const seedUser, seeds = "gardener.cloud:system:seed:local", "gardener.cloud:system:seeds"
	f.Add("system:bootstrap:abcdef", "system:bootstrappers", "client auth", []byte(nil), seedUser, seeds, "")
	f.Add(seedUser, seeds, "client auth", []byte(nil), seedUser, seeds, "")
	f.Add("system:serviceaccount:garden:gardenlet-bootstrap-local", "", "client auth", []byte(nil), seedUser,
		seeds+" system:masters", "a")
	f.Add("a", "b", "server auth",
		[]byte("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"), "", "", "")
	f.Fuzz(func(t *testing.T, username, group, usage string, raw []byte, commonName, organizations, dnsNames string) {
		if len(raw) == 0 {
			raw = certrequest.TryEncode(&x509.CertificateRequest{
				Subject:  pkix.Name{CommonName: commonName, Organization: strings.Fields(organizations)},
				DNSNames: strings.Fields(dnsNames),
			})
			if raw == nil {
				return
			}
		}
		seed, err := SeedOf(&certificatesv1.CertificateSigningRequest{
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Username: username, Groups: []string{group},
				Usages: []certificatesv1.KeyUsage{certificatesv1.KeyUsage(usage)}, Request: raw,
			},
		})
		block, _ := pem.Decode(raw)
		if block == nil {
			if seed != "" || err != nil {
				t.Fatalf("seed %q, %v of what is no PEM", seed, err)
			}
			return
		}
		parsed, parseErr := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			return
		}
		if seed == "" {
			if parseErr == nil && block.Type == "CERTIFICATE REQUEST" &&
				(slices.Contains(parsed.Subject.Organization, seeds) ||
					strings.HasPrefix(parsed.Subject.CommonName, "gardener.cloud:system:seed:")) {
				t.Fatalf("a request for %s is left to others", parsed.Subject)
			}
			return
		}
		if parseErr != nil || parsed.CheckSignature() != nil ||
			parsed.Subject.CommonName != "gardener.cloud:system:seed:"+seed ||
			!slices.Equal(parsed.Subject.Organization, []string{seeds}) {
			t.Fatalf("granted seed %q with subject %v, %v", seed, parsed, parseErr)
		}
		if usage != string(certificatesv1.UsageClientAuth) ||
			len(parsed.DNSNames)+len(parsed.IPAddresses)+len(parsed.EmailAddresses)+len(parsed.URIs) > 0 {
			t.Fatalf("granted seed %q usage %q and names %v", seed, usage, parsed.DNSNames)
		}
		token := strings.HasPrefix(username, "system:bootstrap:") && group == "system:bootstrappers"
		if !token && username != parsed.Subject.CommonName &&
			username != "system:serviceaccount:garden:gardenlet-bootstrap-"+seed {
			t.Fatalf("granted seed %q to %q of %q", seed, username, group)
		}
	})
}
