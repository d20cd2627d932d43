package v1beta1

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestShootWarnings(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name   string
		change func(*Shoot)
		want   []string
	}{
		{"nothing to say", func(*Shoot) {}, nil},
		{
			"old reference to the profile", func(s *Shoot) { s.Spec.CloudProfileName = new("local") },
			[]string{"spec.cloudProfileName is deprecated: use cloudProfile"},
		},
		{
			"old binding", func(s *Shoot) { s.Spec.SecretBindingName = new("local") },
			[]string{"spec.secretBindingName is deprecated: use credentialsBindingName"},
		},
		{
			"IPVS", func(s *Shoot) { s.Spec.Kubernetes.KubeProxy.Mode = new(ProxyModeIPVS) },
			[]string{"spec.kubernetes.kubeProxy.mode is deprecated: value IPVS"},
		},
		{
			"DNS providers", func(s *Shoot) { s.Spec.DNS = &DNS{Providers: []DNSProvider{{SecretName: new("a")}}} },
			[]string{"spec.dns.providers[0].secretName is deprecated", "spec.dns.providers is deprecated"},
		},
		{"old credentials", func(s *Shoot) { s.CreationTimestamp = metav1.Time{Time: now.AddDate(-1, 0, 0)} },
			[]string{
				"certificate authorities: last rotated on 2025-11-21; rotate with annotation " +
					"gardener.cloud/operation=rotate-ca-start", "service account tokens", "encryption at rest",
			}},
		{"old credentials, but rotated", func(s *Shoot) {
			s.CreationTimestamp = metav1.Time{Time: now.AddDate(-1, 0, 0)}
			lately := &metav1.Time{Time: now.AddDate(0, -1, 0)}
			s.Status.Credentials = &ShootCredentials{Rotation: &ShootCredentialsRotation{
				CertificateAuthorities: &CARotation{LastInitiationTime: lately},
				ServiceAccountKey:      &ServiceAccountKeyRotation{LastInitiationTime: lately},
				ETCDEncryptionKey:      &ETCDEncryptionKeyRotation{LastInitiationTime: lately},
			}}
		}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			shoot := aShoot()
			row.change(shoot)
			expectWarnings(t, ShootWarnings(shoot, now), row.want...)
		})
	}
}

func expectWarnings(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("got %q, want …%s…", got[i], want[i])
		}
	}
}

func TestOtherWarnings(t *testing.T) {
	profile := aProfile()
	expectWarnings(t, CloudProfileWarnings(profile),
		"spec.kubernetes.versions[1].classification is deprecated: use lifecycle",
		"spec.machineImages[0].versions[2].classification is deprecated")
	expectWarnings(t, NamespacedCloudProfileWarnings(aNamespacedProfile()),
		"spec.kubernetes.versions[0].expirationDate is deprecated: use lifecycle")
	expectWarnings(t, SecretBindingWarnings(aSecretBinding()), "create a CredentialsBinding")
}
