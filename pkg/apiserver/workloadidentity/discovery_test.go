package workloadidentity

import (
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestPublication(t *testing.T) {
	const url = "https://discovery.example.com/garden/workload-identity/issuer"
	issuer, err := NewIssuer(url, testKey(), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	publication, err := issuer.Publish()
	if err != nil {
		t.Fatal(err)
	}
	read := func(path string, into any) {
		t.Helper()
		recorder := httptest.NewRecorder()
		publication.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		if recorder.Code != http.StatusOK || recorder.Header().Get("Content-Type") != "application/json" {
			t.Fatalf("GET %s: %d %s", path, recorder.Code, recorder.Body)
		}
		if err := json.Unmarshal(recorder.Body.Bytes(), into); err != nil {
			t.Fatal(err)
		}
	}
	described := configuration{}
	read("/garden/workload-identity/issuer/.well-known/openid-configuration", &described)
	if described.Issuer != url || described.KeysURI != url+"/jwks" {
		t.Errorf("the configuration is %+v", described)
	}
	var keys struct{ Keys []publicKey }
	read("/garden/workload-identity/issuer/jwks", &keys)
	if len(keys.Keys) != 1 || keys.Keys[0].ID != issuer.keyID {
		t.Fatalf("the keys are %+v", keys)
	}
	number := func(text string) *big.Int {
		data, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return new(big.Int).SetBytes(data)
	}
	got := &rsa.PublicKey{N: number(keys.Keys[0].Modulus), E: int(number(keys.Keys[0].Exponent).Int64())}
	if !got.Equal(testKey().Public()) {
		t.Error("the published key is not the one that signs")
	}
}

func TestAnybodyReadsThePublication(t *testing.T) {
	issuer, err := NewIssuer("https://issuer.example.com", testKey(), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	publication, err := issuer.Publish()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		verb, path string
		want       authorizer.Decision
	}{
		{"get", "/jwks", authorizer.DecisionAllow},
		{"get", "/.well-known/openid-configuration", authorizer.DecisionAllow},
		{"post", "/jwks", authorizer.DecisionNoOpinion},
		{"get", "/jwks/more", authorizer.DecisionNoOpinion},
		{"get", "/metrics", authorizer.DecisionNoOpinion},
	} {
		got, _, err := publication.Authorize(t.Context(),
			authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: user.Anonymous}, Verb: test.verb, Path: test.path,
			})
		if got != test.want || err != nil {
			t.Errorf("%s %s: %v, %v", test.verb, test.path, got, err)
		}
	}
}
