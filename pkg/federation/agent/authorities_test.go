package agent

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// authority signs certificates of servers on 127.0.0.1 and of clients.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, since time.Time) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fleet"}, NotBefore: since,
		NotAfter: since.Add(24 * time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	return authority{signed(t, template, template, &key.PublicKey, key), key}
}

func signed(t *testing.T, template, parent *x509.Certificate, public *ecdsa.PublicKey,
	key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func (a authority) issue(t *testing.T) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "u"}, NotBefore: a.certificate.NotBefore,
		NotAfter: a.certificate.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	leaf := signed(t, template, a.certificate, &key.PublicKey, a.key)
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
}

func bundle(authorities ...authority) []byte {
	var result []byte
	for _, a := range authorities {
		result = append(result, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})...)
	}
	return result
}

// fleetServer is a fleet's, with a certificate that can be replaced.
type fleetServer struct {
	*httptest.Server
	shows  atomic.Pointer[tls.Certificate]
	status atomic.Int32
}

func newFleetServer(t *testing.T, shows *tls.Certificate) *fleetServer {
	t.Helper()
	s := &fleetServer{}
	s.shows.Store(shows)
	s.status.Store(http.StatusOK)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(s.status.Load()))
	}))
	s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*s.shows.Load()}}, nil
	}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// known is an agent that was invited to a server with an authority.
func known(t *testing.T, s *fleetServer, pinned []byte) *agent {
	t.Helper()
	config := &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: pinned}}
	w, err := newWay(config)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: credentialsSecret}}
	return &agent{
		store: store{fake.NewClientBuilder().WithObjects(secret).Build(), "n"}, way: w,
		invited: &invitation{member: "m", config: config, hash: "1"}, user: "u",
	}
}

// tells has the fleet tell of an authority.
func (a *agent) tells(authority []byte) {
	a.fleet = fake.NewClientBuilder().WithObjects(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: clusterv1alpha1.CredentialsNamespace, Name: registration.AuthorityConfigMap,
		}, Data: map[string]string{
			"ca.crt": string(authority),
		},
	}).Build()
}

// reaches tells whether a new connection to the fleet comes about.
func (a *agent) reaches(t *testing.T) bool {
	t.Helper()
	a.way.dialer.CloseAll()
	_, err := a.way.knock(t.Context(), a.way.trusted.Load())
	return err == nil
}

func (a *agent) remembers(t *testing.T) []byte {
	t.Helper()
	secret, err := a.store.read(t.Context(), credentialsSecret)
	if err != nil {
		t.Fatal(err)
	}
	return secret.Data[authorityKey]
}

// While both authorities are told the agent learns the new one, and then forgets the old one.
func TestFollowsRotatedAuthority(t *testing.T) {
	before, after := newAuthority(t, time.Now().Add(-time.Hour)), newAuthority(t, time.Now().Add(-time.Minute))
	s := newFleetServer(t, before.issue(t))
	a := known(t, s, bundle(before))
	for _, step := range []struct {
		told  []byte
		shown authority
	}{
		{bundle(before), before}, {bundle(before, after), before}, {bundle(before, after), after},
		{bundle(after), after},
	} {
		s.shows.Store(step.shown.issue(t))
		a.tells(step.told)
		if err := a.learn(t.Context()); err != nil || !a.reaches(t) {
			t.Fatalf("got %v", err)
		}
	}
	if !bytes.Equal(a.remembers(t), bundle(after)) {
		t.Errorf("the agent remembers %s", a.remembers(t))
	}
	s.shows.Store(before.issue(t))
	if a.reaches(t) {
		t.Error("the old authority is still trusted")
	}
}

func TestKeepsAuthority(t *testing.T) {
	pinned, other := newAuthority(t, time.Now().Add(-time.Hour)), newAuthority(t, time.Now())
	s := newFleetServer(t, pinned.issue(t))
	for name, told := range map[string][]byte{
		"one that the fleet's certificate is not from": bundle(other), "something broken": []byte("x"), "nothing": nil,
	} {
		a := known(t, s, bundle(pinned))
		a.tells(told)
		if err := a.learn(t.Context()); err == nil || a.remembers(t) != nil || !a.reaches(t) {
			t.Errorf("%s: got %v, remembers %s", name, err, a.remembers(t))
		}
	}
}

// What cannot be stored would be forgotten when the agent starts again, so it is not used.
func TestStoresAuthorityFirst(t *testing.T) {
	before, after := newAuthority(t, time.Now().Add(-time.Hour)), newAuthority(t, time.Now())
	a := known(t, newFleetServer(t, before.issue(t)), bundle(before))
	a.store.namespace = "elsewhere"
	a.tells(bundle(before, after))
	if err := a.learn(t.Context()); err == nil || !bytes.Equal(a.way.trusted.Load().authority, bundle(before)) {
		t.Errorf("got %v", err)
	}
}

func TestHasNewer(t *testing.T) {
	before, after := newAuthority(t, time.Now().Add(-time.Hour)), newAuthority(t, time.Now())
	leaf, renewed := before.issue(t).Leaf, after.issue(t).Leaf
	for name, tc := range map[string]struct {
		accepted []byte
		leaf     *x509.Certificate
		want     bool
	}{
		"before a rotation":           {bundle(before), leaf, false},
		"while both are accepted":     {bundle(after, before), leaf, true},
		"in the other order":          {bundle(before, after), leaf, true},
		"renewed":                     {bundle(before, after), renewed, false},
		"after the rotation":          {bundle(after), renewed, false},
		"an authority that is hidden": {bundle(after), leaf, false},
		"something broken":            {[]byte("x"), leaf, false},
	} {
		if got := hasNewer(tc.accepted, tc.leaf); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// Another invitation pins another authority, and lets an agent that was away for too long ask again.
func TestTakesUpInvitation(t *testing.T) {
	pinned := newAuthority(t, time.Now().Add(-time.Hour))
	key, err := registration.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	certificate := issued(t, "u", key, time.Now().Add(time.Minute))
	for name, tc := range map[string]struct {
		hash           string
		status         int32
		learned, stays bool
	}{
		"the same invitation":                       {"1", http.StatusUnauthorized, true, true},
		"another, and the certificate is accepted":  {"2", http.StatusOK, false, true},
		"another, and the agent may do nothing":     {"2", http.StatusForbidden, false, true},
		"another, and the certificate is not known": {"2", http.StatusUnauthorized, false, false},
	} {
		s := newFleetServer(t, pinned.issue(t))
		s.status.Store(tc.status)
		a := known(t, s, bundle(pinned))
		if err := a.store.write(t.Context(),
			map[string][]byte{
				invitationKey: []byte("1"), authorityKey: []byte("learned"), "tls.crt": certificate, "tls.key": key,
			}); err != nil {
			t.Fatal(err)
		}
		secret, err := a.store.read(t.Context(), credentialsSecret)
		if err != nil {
			t.Fatal(err)
		}
		a.invited.hash = tc.hash
		got, err := a.takeUp(t.Context(), a.invited, secret)
		if err != nil {
			t.Fatal(err)
		}
		if string(got.Data[invitationKey]) != tc.hash || (len(got.Data[authorityKey]) > 0) != tc.learned ||
			(len(got.Data["tls.crt"]) > 0) != tc.stays || bytes.Equal(got.Data["tls.key"], key) != tc.stays {
			t.Errorf("%s: got %v", name, got.Data)
		}
		if _, err := registration.KeyFingerprint(got.Data["tls.key"]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A fleet that does not answer says nothing about the certificate.
func TestInvitationWaitsForFleet(t *testing.T) {
	s := newFleetServer(t, newAuthority(t, time.Now()).issue(t))
	a := known(t, s, bundle(newAuthority(t, time.Now())))
	key, err := registration.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string][]byte{"tls.crt": issued(t, "u", key, time.Now().Add(time.Minute)), "tls.key": key}
	if got, err := a.takeUp(context.Background(), a.invited, &corev1.Secret{Data: entries}); err == nil {
		t.Errorf("got %v", got.Data)
	}
}
