package certificate

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/test/certrequest"
)

func TestSeedOf(t *testing.T) {
	seedUser := gardencorev1beta1.SeedUserNamePrefix + "local"
	good := func() (*x509.CertificateRequest, *certificatesv1.CertificateSigningRequestSpec) {
		return &x509.CertificateRequest{
				Subject: pkix.Name{CommonName: seedUser, Organization: []string{gardencorev1beta1.SeedsGroup}},
			},
			&certificatesv1.CertificateSigningRequestSpec{
				Username: "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers"},
				Usages: []certificatesv1.KeyUsage{
					certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature,
					certificatesv1.UsageKeyEncipherment,
				},
			}
	}
	tests := map[string]struct {
		change func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequestSpec)
		seed   string
		says   string
	}{
		"bootstrap": {seed: "local"},
		"renewal": {
			change: func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
				s.Username, s.Groups = seedUser, nil
			},
			seed: "local",
		},
		"bootstrap by a service account": {
			change: func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
				s.Username, s.Groups = "system:serviceaccount:garden:gardenlet-bootstrap-local", nil
			},
			seed: "local",
		},
		"by the service account of another seed": {
			change: func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
				s.Username, s.Groups = "system:serviceaccount:garden:gardenlet-bootstrap-other", nil
			},
			seed: "local", says: "may not request it",
		},
		"of somebody else": {
			change: func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
				r.Subject = pkix.Name{CommonName: "system:node:a", Organization: []string{"system:nodes"}}
			},
		},
		"another seed's": {
			change: func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
				s.Username, s.Groups = gardencorev1beta1.SeedUserNamePrefix+"other", nil
			},
			seed: "local", says: "may not request it",
		},
		"a bootstrap name without the group": {
			change: func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
				s.Groups = nil
			},
			seed: "local", says: "may not request it",
		},
		"one more organization": {
			change: func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
				r.Subject.Organization = append(r.Subject.Organization, "system:masters")
			},
			seed: "local", says: "only gardener.cloud:system:seeds is allowed",
		},
		"the group without a seed's name": {
			change: func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
				r.Subject.CommonName = "admin"
			},
			seed: "admin", says: "common name",
		},
		"a DNS name": {
			change: func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
				r.DNSNames = []string{"a"}
			},
			seed: "local", says: "alternative names",
		},
		"a serving certificate": {
			change: func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
				s.Usages = append(s.Usages, certificatesv1.UsageServerAuth)
			},
			seed: "local", says: `usage "server auth" is not allowed`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			request, spec := good()
			if test.change != nil {
				test.change(request, spec)
			}
			spec.Request = certrequest.Encode(t, request)
			seed, err := SeedOf(&certificatesv1.CertificateSigningRequest{Spec: *spec})
			if seed != test.seed {
				t.Errorf("seed = %q, want %q", seed, test.seed)
			}
			if (err == nil) != (test.says == "") || (err != nil && !strings.Contains(err.Error(), test.says)) {
				t.Errorf("error = %v, want it to say %q", err, test.says)
			}
		})
	}
}

func TestTokensAreHeldToTheirSeed(t *testing.T) {
	bound := func(labels map[string]string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Data:       map[string][]byte{tokenExpirationKey: []byte("2026-01-02T00:00:00Z")},
		}
	}
	for name, test := range map[string]struct {
		token *corev1.Secret
		says  string
	}{
		"no seed's":            {bound(nil), "label Secret"},
		"an empty name's":      {bound(map[string]string{"trellis.garden/seed": ""}), "names no seed"},
		"the seed's":           {bound(map[string]string{"trellis.garden/seed": "local"}), ""},
		"another seed's":       {bound(map[string]string{"trellis.garden/seed": "other"}), `of seed "other" only`},
		"gone in the meantime": {nil, "does not exist"},
	} {
		err := checkToken(test.token, "local", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
}
