package csrapprover

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-garden/trellis/test/certrequest"
)

func TestParse(t *testing.T) {
	good := func() (*x509.CertificateRequest, *certificatesv1.CertificateSigningRequestSpec) {
		return &x509.CertificateRequest{
				Subject:  pkix.Name{CommonName: "system:node:n1", Organization: []string{"system:nodes"}},
				DNSNames: []string{"n1"}, IPAddresses: []net.IP{net.ParseIP("10.0.0.1")},
			}, &certificatesv1.CertificateSigningRequestSpec{
				Username: "system:node:n1", Groups: []string{"system:nodes", "system:authenticated"},
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
			}
	}
	for _, test := range []struct {
		name   string
		change func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequestSpec)
		err    string
	}{
		{"good", func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequestSpec) {}, ""},
		{"a service account", func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
			s.Username = "system:serviceaccount:a:b"
		}, "is not a node"},
		{"not in the group", func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
			s.Groups = nil
		}, "is not in group"},
		{"client usage", func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
			s.Usages = append(s.Usages, certificatesv1.UsageClientAuth)
		}, `usage "client auth"`},
		{"another node's name", func(c *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			c.Subject.CommonName = "system:node:n2"
		}, "differs from the requester"},
		{"more organizations", func(c *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			c.Subject.Organization = append(c.Subject.Organization, "system:masters")
		}, "organization must be exactly"},
		{"e-mail", func(c *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			c.EmailAddresses = []string{"a@b"}
		}, "e-mail"},
		{"nothing asked for", func(c *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			c.DNSNames, c.IPAddresses = nil, nil
		}, "no DNS name"},
		{"more names than a node has",
			func(c *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
				c.DNSNames = slices.Repeat([]string{"n1"}, maxNames)
			}, "more than 64 DNS names"},
		{"a large request", func(c *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			c.DNSNames = []string{strings.Repeat("n", maxRequestBytes)}
		}, "more than 16384"},
	} {
		t.Run(test.name, func(t *testing.T) {
			template, spec := good()
			test.change(template, spec)
			spec.Request = certrequest.Encode(t, template)
			got, err := Parse(&certificatesv1.CertificateSigningRequest{Spec: *spec})
			if (err == nil) != (test.err == "") || (err != nil && !strings.Contains(err.Error(), test.err)) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if err == nil && (got.NodeName != "n1" || !slices.Equal(got.IPs, []string{"10.0.0.1"})) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestMissingNamesWhatTheNodeDoesNotHave(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "n1"}, {Type: corev1.NodeInternalIP, Address: "10.0.0.1"},
	}}}
	for _, test := range []struct {
		request Request
		want    []string
	}{
		{Request{DNSNames: []string{"n1"}, IPs: []string{"10.0.0.1"}}, nil},
		{Request{DNSNames: []string{"n1", "evil"}, IPs: []string{"10.0.0.2"}}, []string{"evil", "10.0.0.2"}},
		{Request{DNSNames: []string{"10.0.0.1"}}, []string{"10.0.0.1"}},
	} {
		if got := test.request.Missing(node); !slices.Equal(got, test.want) {
			t.Errorf("%+v: missing %v, want %v", test.request, got, test.want)
		}
	}
}
