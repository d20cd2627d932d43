package federation

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// newAuthority is what a rotation brings, as PEM.
func newAuthority(t *testing.T) (certificate *x509.Certificate, key *ecdsa.PrivateKey, certificatePEM, keyPEM []byte) {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "rotated"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	return newCertificate(t, template, nil, nil)
}

// newCertificate is signed by itself without a parent.
func newCertificate(t *testing.T, template, parent *x509.Certificate,
	signer *ecdsa.PrivateKey) (certificate *x509.Certificate, key *ecdsa.PrivateKey, certificatePEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if parent == nil {
		parent, signer = template, key
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(time.Now().UnixNano()),
		time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return certificate, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// replace a file of the API servers', until the test ends. Kubernetes' processes look at theirs again when they change.
func (s *apiServers) replace(t *testing.T, name string, content []byte) {
	t.Helper()
	before, err := os.ReadFile(s.file(name))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.file(name), content, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(s.file(name), before, 0o600); err != nil {
			t.Error(err)
		}
	})
}

func (s *apiServers) content(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(s.file(name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// tellAuthority writes what the kube-controller-manager keeps in every namespace.
func (w *world) tellAuthority(t *testing.T, authority []byte) {
	t.Helper()
	told := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: clusterv1alpha1.CredentialsNamespace, Name: registration.AuthorityConfigMap,
		},
	}
	if _, err := controllerutil.CreateOrPatch(ctx, w.fleet, told,
		func() error { told.Data = map[string]string{"ca.crt": string(authority)}; return nil }); err != nil {
		t.Fatal(err)
	}
}

// acceptsClientsOf waits until the fleet says that it accepts the certificates of an authority, or of none besides.
func (w *world) acceptsClientsOf(t *testing.T, authorities []byte) {
	t.Helper()
	eventually(t, "the fleet accepts the authority's clients", func() error {
		told := &corev1.ConfigMap{}
		key := types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: registration.ClientAuthorityConfigMap}
		if err := w.fleet.Get(ctx, key, told); err != nil {
			return err
		}
		if !strings.Contains(told.Data[registration.ClientAuthorityConfigMapKey], string(authorities)) {
			return errors.New("not yet")
		}
		return nil
	})
}

// shows waits until the fleet's certificate is from an authority.
func (w *world) shows(t *testing.T, authority *x509.Certificate) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	eventually(t, "the fleet shows its new certificate", func() error {
		connection, err := tls.Dial("tcp", strings.TrimPrefix(w.fleetConfig.Host, "https://"),
			&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// refuses waits until the fleet does not know an agent's certificate any more.
func refuses(t *testing.T, p *pulled, own client.Client) {
	t.Helper()
	eventually(t, "the fleet refuses the certificate", func() error {
		// The connection may be one that was made before.
		err := own.Get(ctx, client.ObjectKey{Name: p.name}, &clusterv1alpha1.Cluster{})
		if !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}

func (p *pulled) credentials(t *testing.T) map[string][]byte {
	t.Helper()
	secret := &corev1.Secret{}
	if err := p.member.Get(ctx, types.NamespacedName{Namespace: p.invitation.Access, Name: "credentials"},
		secret); err != nil {
		t.Fatal(err)
	}
	return secret.Data
}

// isSignedBy tells whether the agent's certificate is.
func (p *pulled) isSignedBy(t *testing.T, authority *x509.Certificate) error {
	t.Helper()
	block, _ := pem.Decode(p.credentials(t)["tls.crt"])
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return leaf.CheckSignatureFrom(authority)
}

// An agent outlasts a rotation of all that a fleet and its agents know each other by, though neither is invited nor
// accepted anew.
func TestAgentFollowsRotation(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	p := w.invite(t, "rotated", registration.Allowance{})
	kill, _ := p.start(t)
	p.accept(t)
	w.ready(t, p.name, metav1.ConditionTrue, "ClusterReady")

	before := p.asAgent(t)
	servingBefore, clientsBefore := w.servers.content(t, "fleet/apiserver.crt"),
		w.servers.content(t, "fleet-clients.crt")
	authority, key, authorityPEM, keyPEM := newAuthority(t)
	_, _, servingPEM, servingKeyPEM := newCertificate(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority, key)

	t.Log("Preparing: both are accepted, and told of; the server shows the old certificate")
	w.servers.replace(t, "fleet-clients.crt", append(bytes.Clone(clientsBefore), authorityPEM...))
	w.acceptsClientsOf(t, authorityPEM)
	both := append(bytes.Clone(servingBefore), authorityPEM...)
	w.tellAuthority(t, both)
	eventually(t, "the agent asks for another certificate, though the old authority still signs", func() error {
		if list := p.requests(t); len(list) < 2 {
			return fmt.Errorf("%d requests", len(list))
		}
		return nil
	})
	w.servers.replace(t, "signer.crt", authorityPEM)
	w.servers.replace(t, "signer.key", keyPEM)
	eventually(t, "the agent has a certificate of the new authority, and stores both", func() error {
		if !bytes.Equal(p.credentials(t)["ca.crt"], both) {
			return fmt.Errorf("it knows %s", p.credentials(t)["ca.crt"])
		}
		return p.isSignedBy(t, authority)
	})

	t.Log("Completing: the old authority is worth nothing any more")
	w.servers.replace(t, "fleet/apiserver.crt", servingPEM)
	w.servers.replace(t, "fleet/apiserver.key", servingKeyPEM)
	w.shows(t, authority)
	w.servers.replace(t, "fleet-clients.crt", authorityPEM)
	refuses(t, p, before)
	w.tellAuthority(t, authorityPEM)
	eventually(t, "the agent forgets the old authority", func() error {
		if !bytes.Equal(p.credentials(t)["ca.crt"], authorityPEM) {
			return fmt.Errorf("it knows %s", p.credentials(t)["ca.crt"])
		}
		return nil
	})
	kill()
	kill, _ = p.start(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, policyFor(p.name))[0], input(t, "000-karmada-nginx-3docs")[0])
	eventually(t, "the agent goes on", func() error { _, err := deployment(p.member, namespace); return err })

	t.Log("An agent that has missed a rotation is invited and accepted again")
	kill()
	rotated := p.asAgent(t)
	w.servers.replace(t, "signer.crt", clientsBefore)
	w.servers.replace(t, "signer.key", w.servers.content(t, "sa.key"))
	w.servers.replace(t, "fleet-clients.crt", clientsBefore)
	refuses(t, p, rotated)
	p.fleet = w.pinnedFleet(t)
	p.apply(t, registration.Allowance{})
	_, ended := p.start(t)
	p.accept(t)
	w.ready(t, p.name, metav1.ConditionTrue, "ClusterReady")
	w.unjoins(t, p, namespace, ended)
}

// requests for certificates that the agent has made.
func (p *pulled) requests(t *testing.T) []certificatesv1.CertificateSigningRequest {
	t.Helper()
	var list certificatesv1.CertificateSigningRequestList
	if err := p.world.fleet.List(ctx, &list, client.MatchingLabels{clusterv1alpha1.MemberLabel: p.name}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}
