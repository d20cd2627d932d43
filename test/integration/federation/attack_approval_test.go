package federation

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
	"github.com/trellis-garden/trellis/test/certrequest"
)

// certificateFor is what an agent asks for.
type certificateFor struct {
	pkix.Name
	dnsNames []string
	lifetime time.Duration
	usage    certificatesv1.KeyUsage
}

// askFor has the holder of an agent's key ask.
func (p *pulled) askFor(t *testing.T, name, id string, of certificateFor) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{clusterv1alpha1.MemberLabel: p.name},
			Annotations: map[string]string{registration.IDAnnotation: id},
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName:        certificatesv1.KubeAPIServerClientSignerName,
			Usages:            []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, of.usage},
			Request:           certrequest.Encode(t, &x509.CertificateRequest{Subject: of.Name, DNSNames: of.dnsNames}),
			ExpirationSeconds: new(int32(of.lifetime.Seconds())),
		},
	}
	if err := p.asAgent(t).Create(ctx, request); err != nil {
		t.Fatalf("%s: %v", of.Name.String(), err)
	}
	t.Cleanup(func() { _ = p.world.fleet.Delete(ctx, request) })
	return request
}

// signed reads the certificate of a request; nil if there is none.
func (w *world) signed(t *testing.T, request *certificatesv1.CertificateSigningRequest) *x509.Certificate {
	t.Helper()
	if err := w.fleet.Get(ctx, client.ObjectKeyFromObject(request), request); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(request.Status.Certificate)
	if block == nil {
		return nil
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// Who takes the federation process over and has the key of an agent, too, asks with that for what it wants to be, and
// approves it.
func TestAttackCertificatesByAnAgentsKey(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	p := w.invite(t, "turned", registration.Allowance{})
	_, ended := p.start(t)
	p.accept(t)
	cluster := w.ready(t, p.name, metav1.ConditionTrue, "ClusterReady")
	own := certificateFor{
		Name: pkix.Name{
			CommonName: registration.AgentUser(cluster), Organization: []string{registration.AgentGroup},
		},
		lifetime: time.Hour, usage: certificatesv1.UsageClientAuth,
	}
	federation := w.asFederation(t, rest.ImpersonationConfig{})
	var attacks []*certificatesv1.CertificateSigningRequest
	for i, change := range []func(*certificateFor){
		func(c *certificateFor) { c.Name = pkix.Name{CommonName: "system:kube-controller-manager"} },
		func(c *certificateFor) { c.Name = pkix.Name{CommonName: "mallory"} },
		func(c *certificateFor) { c.Organization = []string{"gardener.cloud:project:admins"} },
		func(c *certificateFor) {
			c.Organization = []string{registration.AgentGroup, "gardener.cloud:project:admins"}
		},
		func(c *certificateFor) {
			c.CommonName = registration.AgentUser(&clusterv1alpha1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "member1", UID: "1"},
			})
		},
		func(c *certificateFor) { c.dnsNames = []string{"kubernetes"} },
		func(c *certificateFor) { c.lifetime = 365 * 24 * time.Hour },
	} {
		attack := own
		attack.Organization = slices.Clone(own.Organization)
		change(&attack)
		request := p.askFor(t, fmt.Sprintf("attack-%d", i), cluster.Spec.ID, attack)
		attacks = append(attacks, request)
		if err := registration.Approve(ctx, federation, request, "Attack",
			"a certificate of any user"); !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), "certificatesigningrequests/approval") {
			t.Errorf("the federation approves one for %s: %v", attack.Name.String(), err)
		}
	}
	// Requests are looked at one after the other, as they come.
	sound := p.askFor(t, "sound", cluster.Spec.ID, own)
	eventually(t, "the agent gets a certificate for itself", func() error {
		if w.signed(t, sound) == nil {
			return errors.New("there is none")
		}
		return nil
	})
	for _, request := range attacks {
		if certificate := w.signed(t, request); certificate != nil {
			t.Errorf("%s gives a certificate for %s until %s", request.Name, certificate.Subject, certificate.NotAfter)
		} else if len(request.Status.Conditions) > 0 {
			t.Errorf("%s was decided about: %+v", request.Name, request.Status.Conditions)
		}
	}
	w.unjoins(t, p, w.newNamespace(t), ended)
}
