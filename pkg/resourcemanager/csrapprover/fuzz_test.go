package csrapprover

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/trellis-garden/trellis/test/certrequest"
)

// FuzzParse tries requests as bytes, and as fields of which a request is made: whatever Parse accepts must be a serving
// certificate for names of the node that asks.
func FuzzParse(f *testing.F) {
	f.Add("system:node:n1", "system:nodes", "server auth", []byte(nil), "system:node:n1", "system:nodes", "n1", "",
		[]byte{10, 0, 0, 1})
	f.Add("system:node:n1", "system:nodes", "client auth", []byte(nil), "system:node:n2", "system:masters", "", "a@b",
		[]byte{10, 0, 0, 1, 10, 0, 0, 2})
	f.Add("system:serviceaccount:a:b", "", "",
		[]byte("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"), "", "", "", "",
		[]byte(nil))
	f.Fuzz(func(t *testing.T, username, group, usage string, raw []byte,
		commonName, organizations, dnsNames, email string, ips []byte) {
		if len(raw) == 0 {
			template := &x509.CertificateRequest{
				Subject:  pkix.Name{CommonName: commonName, Organization: strings.Fields(organizations)},
				DNSNames: strings.Fields(dnsNames),
			}
			if email != "" {
				template.EmailAddresses = []string{email}
			}
			for ip := range slices.Chunk(ips, net.IPv4len) {
				if len(ip) == net.IPv4len {
					template.IPAddresses = append(template.IPAddresses, ip)
				}
			}
			if raw = certrequest.TryEncode(template); raw == nil {
				return
			}
		}
		csr := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
			Username: username, Groups: []string{group},
			Usages: []certificatesv1.KeyUsage{certificatesv1.KeyUsage(usage)}, Request: raw,
		}}
		got, err := Parse(csr)
		if err != nil {
			return
		}
		block, _ := pem.Decode(raw)
		parsed, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			t.Fatalf("accepted what is no request: %v", err)
		}
		if username != "system:node:"+got.NodeName || got.NodeName == "" || group != "system:nodes" ||
			usage == string(certificatesv1.UsageClientAuth) {
			t.Fatalf("%+v of user %q of group %q for usage %q", got, username, group, usage)
		}
		if parsed.Subject.CommonName != username ||
			!slices.Equal(parsed.Subject.Organization, []string{"system:nodes"}) {
			t.Fatalf("%+v for subject %s of user %q", got, parsed.Subject, username)
		}
		names := len(got.DNSNames) + len(got.IPs)
		if names == 0 || names > maxNames ||
			names != len(parsed.DNSNames)+len(parsed.IPAddresses)+len(parsed.EmailAddresses)+len(parsed.URIs) {
			t.Fatalf("%+v of a request for %v %v %v %v", got, parsed.DNSNames, parsed.IPAddresses,
				parsed.EmailAddresses, parsed.URIs)
		}
	})
}
