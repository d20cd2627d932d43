package workloadidentity

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	clocktesting "k8s.io/utils/clock/testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

var (
	testKey = sync.OnceValue(func() *rsa.PrivateKey {
		key, err := rsa.GenerateKey(rand.Reader, minKeyBits)
		if err != nil {
			panic(err)
		}
		return key
	})
	now    = time.Unix(1700000000, 500)
	limits = Limits{Default: time.Hour, Min: 30 * time.Minute, Max: 2 * time.Hour}
)

func TestValidity(t *testing.T) {
	for name, test := range map[string]struct {
		seconds *int64
		want    time.Duration
	}{
		"nothing": {nil, time.Hour}, "between": {new(int64(3601)), 3601 * time.Second},
		"less": {new(int64(600)), 30 * time.Minute}, "more": {new(int64(1 << 32)), 2 * time.Hour},
		"much more": {new(int64(math.MaxInt64)), 2 * time.Hour},
	} {
		if got := limits.validity(test.seconds); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestParseKey(t *testing.T) {
	pkcs8 := func(key any) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	}
	elliptical, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		data    []byte
		message string
	}{
		"PKCS#1": {
			pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(testKey())}), "",
		},
		"PKCS#8": {pkcs8(testKey()), ""},
		"ECDSA":  {pkcs8(elliptical), "RSA key is needed"},
		"small":  {pkcs8(small), "1024 bits"},
		"text":   {[]byte("secret"), "no PEM block"},
	} {
		key, err := parseKey(test.data)
		if test.message == "" && (err != nil || !key.Equal(testKey())) ||
			test.message != "" && (err == nil || !strings.Contains(err.Error(), test.message)) {
			t.Errorf("%s: error %v, want %q", name, err, test.message)
		}
	}
}

// stored is what the server has stored, by resource and name with namespace.
type stored map[string]runtime.Object

func (s stored) Get(_ context.Context, resource schema.GroupResource, namespace, name string) (runtime.Object, error) {
	if object, ok := s[resource.Resource+" "+namespace+"/"+name]; ok {
		return object, nil
	}
	return nil, apierrors.NewNotFound(resource, name)
}

func (s stored) List(_ context.Context, _ schema.GroupResource, _ string,
	selector fields.Selector) (runtime.Object, error) {
	list := &gardencorev1beta1.ProjectList{}
	for _, object := range s {
		if project, ok := object.(*gardencorev1beta1.Project); ok &&
			selector.Matches(fields.Set{"spec.namespace": *project.Spec.Namespace}) {
			list.Items = append(list.Items, *project)
		}
	}
	return list, nil
}

func meta(namespace, name, uid string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}
}

func aGarden() stored {
	entry := &gardencorev1beta1.BackupEntry{
		ObjectMeta: meta("garden-demo", "shoot--demo--member1--u-shoot", "u-entry"),
		Spec:       gardencorev1beta1.BackupEntrySpec{BucketName: "bucket", SeedName: new("seed")},
	}
	entry.OwnerReferences = []metav1.OwnerReference{{Kind: "Shoot", Name: "member1"}}
	return stored{
		"shoots garden-demo/member1": &gardencorev1beta1.Shoot{
			ObjectMeta: meta("garden-demo", "member1", "u-shoot"),
			Spec:       gardencorev1beta1.ShootSpec{SeedName: new("seed")},
			Status:     gardencorev1beta1.ShootStatus{TechnicalID: "shoot--demo--member1"},
		},
		"seeds /seed": &gardencorev1beta1.Seed{ObjectMeta: meta("", "seed", "u-seed")},
		"projects /demo": &gardencorev1beta1.Project{
			ObjectMeta: meta("", "demo", "u-project"),
			Spec:       gardencorev1beta1.ProjectSpec{Namespace: new("garden-demo")},
		},
		"backupbuckets /bucket": &gardencorev1beta1.BackupBucket{
			ObjectMeta: meta("", "bucket", "u-bucket"), Spec: gardencorev1beta1.BackupBucketSpec{SeedName: new("seed")},
		},
		"backupentries garden-demo/shoot--demo--member1--u-shoot": entry,
	}
}

// identities returns the same WorkloadIdentity for its name.
type identities struct{}

func (identities) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if name != "aws" {
		return nil, apierrors.NewNotFound(securityv1alpha1.Resource("workloadidentities"), name)
	}
	return &securityv1alpha1.WorkloadIdentity{
		ObjectMeta: meta("garden-demo", "aws", "u-identity"),
		Spec:       securityv1alpha1.WorkloadIdentitySpec{Audiences: []string{"sts.amazonaws.com"}},
		Status: securityv1alpha1.WorkloadIdentityStatus{
			Sub: "gardener.cloud:workloadidentity:garden-demo:aws:u-identity",
		},
	}, nil
}

func newREST(t *testing.T) *REST {
	t.Helper()
	issuer, err := NewIssuer("https://issuer.example.com", testKey(), limits)
	if err != nil {
		t.Fatal(err)
	}
	return &REST{
		Identities: identities{}, Reader: aGarden(), Issuer: issuer, Clock: clocktesting.NewFakePassiveClock(now),
	}
}

func contextOf(groups ...string) context.Context {
	ctx := apirequest.WithNamespace(context.Background(), "garden-demo")
	return apirequest.WithUser(ctx, &user.DefaultInfo{Name: "somebody", Groups: groups})
}

// claimsOf verifies a token and returns what it says.
func claimsOf(t *testing.T, token string) registeredClaims {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("token = %q", token)
	}
	decode := func(part string) []byte {
		data, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(&testKey().PublicKey, crypto.SHA256, sum[:], decode(parts[2])); err != nil {
		t.Fatalf("the signature does not fit: %v", err)
	}
	var head header
	if err := json.Unmarshal(decode(parts[0]), &head); err != nil || head.Algorithm != "RS256" || head.KeyID == "" ||
		head.Type != "JWT" {
		t.Errorf("header = %+v, %v", head, err)
	}
	var claims registeredClaims
	if err := json.Unmarshal(decode(parts[1]), &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

func TestToken(t *testing.T) {
	answer, err := newREST(t).Create(contextOf(), "aws", &securityv1alpha1.TokenRequest{}, nil, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status := answer.(*securityv1alpha1.TokenRequest).Status
	claims := claimsOf(t, status.Token)
	if claims.Issuer != "https://issuer.example.com" ||
		claims.Subject != "gardener.cloud:workloadidentity:garden-demo:aws:u-identity" ||
		!slices.Equal(claims.Audience, []string{"sts.amazonaws.com"}) {
		t.Errorf("claims = %+v", claims)
	}
	if claims.IssuedAt != now.Unix() || claims.NotBefore != now.Unix() || claims.Expiry != now.Unix()+3600 ||
		status.ExpirationTimestamp.Unix() != claims.Expiry || claims.ID == "" {
		t.Errorf("times = %+v, %s", claims, status.ExpirationTimestamp)
	}
	if want := (Claims{WorkloadIdentity: Reference{"aws", "garden-demo", "u-identity"}}); claims.Claims != want {
		t.Errorf("claims about the garden = %+v", claims.Claims)
	}
}

func TestContextObjects(t *testing.T) {
	shoot, project, seed := &Reference{"member1", "garden-demo", "u-shoot"}, &Reference{"demo", "", "u-project"},
		&Reference{"seed", "", "u-seed"}
	bucket, entry := &Reference{"bucket", "", "u-bucket"},
		&Reference{"shoot--demo--member1--u-shoot", "garden-demo", "u-entry"}
	identity := Reference{"aws", "garden-demo", "u-identity"}
	object := func(kind, namespace, name, uid string) *securityv1alpha1.ContextObject {
		o := &securityv1alpha1.ContextObject{
			APIVersion: "core.gardener.cloud/v1beta1", Kind: kind, Name: name, UID: types.UID(uid),
		}
		if namespace != "" {
			o.Namespace = &namespace
		}
		return o
	}
	for name, test := range map[string]struct {
		groups  []string
		object  *securityv1alpha1.ContextObject
		want    Claims
		message string
	}{
		"shoot": {
			[]string{gardencorev1beta1.SeedsGroup}, object("Shoot", "garden-demo", "member1", "u-shoot"),
			Claims{identity, shoot, project, seed, nil, nil}, "",
		},
		"shoot for a user": {
			nil, object("Shoot", "garden-demo", "member1", "u-shoot"), Claims{WorkloadIdentity: identity}, "",
		},
		"seed": {
			[]string{gardencorev1beta1.SeedsGroup}, object("Seed", "", "seed", "u-seed"),
			Claims{identity, nil, nil, seed, nil, nil}, "",
		},
		"bucket": {
			[]string{gardencorev1beta1.SeedsGroup}, object("BackupBucket", "", "bucket", "u-bucket"),
			Claims{identity, nil, nil, seed, bucket, nil}, "",
		},
		"entry": {
			[]string{gardencorev1beta1.SeedsGroup},
			object("BackupEntry", "garden-demo", "shoot--demo--member1--u-shoot", "u-entry"),
			Claims{identity, shoot, project, seed, bucket, entry}, "",
		},
		"another UID": {
			[]string{gardencorev1beta1.SeedsGroup}, object("Seed", "", "seed", "u-old"), Claims{},
			"spec.contextObject.uid",
		},
		"no such shoot": {
			[]string{gardencorev1beta1.SeedsGroup}, object("Shoot", "garden-demo", "member2", "u"), Claims{},
			"spec.contextObject.name",
		},
		"no such seed": {
			[]string{gardencorev1beta1.SeedsGroup}, object("Seed", "", "seed2", "u"), Claims{},
			"spec.contextObject.name",
		},
		"another kind": {
			[]string{gardencorev1beta1.SeedsGroup}, object("Project", "", "demo", "u-project"), Claims{},
			"spec.contextObject.kind",
		},
		"another group": {[]string{gardencorev1beta1.SeedsGroup},
			&securityv1alpha1.ContextObject{APIVersion: "v1", Kind: "Seed", Name: "seed", UID: "u"},
			Claims{}, "spec.contextObject.apiVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := &securityv1alpha1.TokenRequest{
				Spec: securityv1alpha1.TokenRequestSpec{ContextObject: test.object},
			}
			answer, err := newREST(t).Create(contextOf(test.groups...), "aws", wanted, nil, &metav1.CreateOptions{})
			if test.message != "" {
				if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.message) {
					t.Errorf("error = %v, want one about %s", err, test.message)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, want := asJSON(t, claimsOf(t, answer.(*securityv1alpha1.TokenRequest).Status.Token).Claims),
				asJSON(t, test.want)
			if got != want {
				t.Errorf("claims = %s\nwant %s", got, want)
			}
		})
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRefusedRequests(t *testing.T) {
	rest := newREST(t)
	withoutKey := *rest
	withoutKey.Issuer = nil
	for name, test := range map[string]struct {
		rest    *REST
		name    string
		request *securityv1alpha1.TokenRequest
		is      func(error) bool
		message string
	}{
		"no key": {
			&withoutKey, "aws", &securityv1alpha1.TokenRequest{}, apierrors.IsServiceUnavailable, "--" + SigningKeyFlag,
		},
		"no identity": {rest, "gcp", &securityv1alpha1.TokenRequest{}, apierrors.IsNotFound, "gcp"},
		"too short": {
			rest, "aws", &securityv1alpha1.TokenRequest{
				Spec: securityv1alpha1.TokenRequestSpec{ExpirationSeconds: new(int64(1))},
			}, apierrors.IsInvalid, "spec.expirationSeconds",
		},
		"other name": {
			rest, "aws", &securityv1alpha1.TokenRequest{ObjectMeta: meta("", "gcp", "")}, apierrors.IsInvalid,
			"metadata.name",
		},
		"other namespace": {
			rest, "aws", &securityv1alpha1.TokenRequest{ObjectMeta: meta("other", "", "")}, apierrors.IsInvalid,
			"metadata.namespace",
		},
	} {
		_, err := test.rest.Create(contextOf(), test.name, test.request, nil, &metav1.CreateOptions{})
		if !test.is(err) || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: error %v, want …%s…", name, err, test.message)
		}
	}
}
