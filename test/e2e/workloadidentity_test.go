//go:build e2e

package e2e

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// An infrastructure trusts the garden as an issuer: it verifies a token of a WorkloadIdentity with what the garden
// publishes to everybody, and needs nothing else.
func TestTokensOfWorkloadIdentitiesAreVerified(t *testing.T) {
	l := open(t)
	garden := l.gardenKubectl()
	garden.apply(t, `
apiVersion: security.gardener.cloud/v1alpha1
kind: WorkloadIdentity
metadata: {name: e2e, namespace: garden-demo}
spec: {audiences: [sts.example.com], targetSystem: {type: local}}`)
	t.Cleanup(func() {
		if _, err := garden.try(context.Background(), "", "-n", "garden-demo", "delete", "workloadidentity",
			"e2e"); err != nil {
			t.Error(err)
		}
	})
	answer, err := garden.try(t.Context(),
		`{"apiVersion":"security.gardener.cloud/v1alpha1","kind":"TokenRequest","spec":{}}`,
		"create", "--raw", "/apis/security.gardener.cloud/v1alpha1/namespaces/garden-demo/workloadidentities/e2e/token",
		"-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	var request struct{ Status struct{ Token string } }
	if err := json.Unmarshal([]byte(answer), &request); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	parts := strings.Split(request.Status.Token, ".")
	if len(parts) != 3 {
		t.Fatalf("the token %q is no JWT", request.Status.Token)
	}
	var claims struct {
		Iss, Sub string
		Aud      []string
	}
	decodePart(t, parts[1], &claims)
	if len(claims.Aud) != 1 || claims.Aud[0] != "sts.example.com" ||
		!strings.HasPrefix(claims.Sub, "gardener.cloud:workloadidentity:garden-demo:e2e:") {
		t.Errorf("the token says %+v", claims)
	}

	outside := l.outside(t)
	var described struct {
		Issuer string
		Keys   string `json:"jwks_uri"`
	}
	readJSON(t, outside, claims.Iss+"/.well-known/openid-configuration", &described)
	if described.Issuer != claims.Iss {
		t.Errorf("the issuer %s calls itself %s", claims.Iss, described.Issuer)
	}
	var keys struct{ Keys []struct{ Kid, N, E string } }
	readJSON(t, outside, described.Keys, &keys)
	var header struct{ Kid string }
	decodePart(t, parts[0], &header)
	if len(keys.Keys) != 1 || keys.Keys[0].Kid != header.Kid {
		t.Fatalf("the token is signed with key %s, published are %+v", header.Kid, keys.Keys)
	}
	key := &rsa.PublicKey{
		N: new(big.Int).SetBytes(raw(t, keys.Keys[0].N)), E: int(new(big.Int).SetBytes(raw(t, keys.Keys[0].E)).Int64()),
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], raw(t, parts[2])); err != nil {
		t.Errorf("the signature: %v", err)
	}
}

// outside returns a client that reaches all host names of the landscape through its gateway, and has no credentials.
func (l *landscape) outside(t *testing.T) *http.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", l.garden())
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(config.CAData)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: authorities},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Host)
		},
	}}
}

func readJSON(t *testing.T, from *http.Client, address string, into any) {
	t.Helper()
	response, err := from.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s", address, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		t.Fatalf("GET %s: %v", address, err)
	}
}

func raw(t *testing.T, text string) []byte {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decodePart(t *testing.T, part string, into any) {
	t.Helper()
	if err := json.Unmarshal(raw(t, part), into); err != nil {
		t.Fatal(err)
	}
}
