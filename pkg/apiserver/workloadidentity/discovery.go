package workloadidentity

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	// discoveryPath below the issuer's URL is where verifiers look for its configuration (OpenID Connect Discovery 1.0,
	// section 4).
	discoveryPath = "/.well-known/openid-configuration"
	// keysPath below the issuer's URL is where its public keys are (RFC 7517).
	keysPath = "/jwks"
	// documentAge is how long verifiers may keep the documents.
	documentAge = "public, max-age=3600"
)

// configuration is what verifiers need to know of an issuer.
type configuration struct {
	Issuer        string   `json:"issuer"`
	KeysURI       string   `json:"jwks_uri"`
	ResponseTypes []string `json:"response_types_supported"`
	SubjectTypes  []string `json:"subject_types_supported"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
}

// publicKey is a key as RFC 7518, section 6.3.1, has it.
type publicKey struct {
	Type      string `json:"kty"`
	Algorithm string `json:"alg"`
	Use       string `json:"use"`
	ID        string `json:"kid"`
	Modulus   string `json:"n"`
	Exponent  string `json:"e"`
}

// documents returns what the issuer publishes, by the path of the URL.
func (i *Issuer) documents() (map[string][]byte, error) {
	base := strings.TrimSuffix(i.url, "/")
	parsed, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("URL of the issuer: %w", err)
	}
	described, err := json.Marshal(configuration{
		Issuer: i.url, KeysURI: base + keysPath,
		ResponseTypes: []string{"id_token"}, SubjectTypes: []string{"public"}, Algorithms: []string{"RS256"},
	})
	if err != nil {
		return nil, err
	}
	keys, err := json.Marshal(map[string][]publicKey{"keys": {{
		Type: "RSA", Algorithm: "RS256", Use: "sig", ID: i.keyID,
		Modulus: encode(i.key.N.Bytes()), Exponent: encode(big.NewInt(int64(i.key.E)).Bytes()),
	}}})
	return map[string][]byte{parsed.Path + discoveryPath: described, parsed.Path + keysPath: keys}, err
}

// Publication is what an issuer tells the world: its configuration and public keys, at the paths of its URL.
type Publication struct{ documents map[string][]byte }

// Publish prepares the issuer's documents.
func (i *Issuer) Publish() (*Publication, error) {
	documents, err := i.documents()
	return &Publication{documents: documents}, err
}

// Paths returns where the documents are.
func (p *Publication) Paths() []string {
	var paths []string
	for path := range p.documents {
		paths = append(paths, path)
	}
	return paths
}

// ServeHTTP answers with the document of the path.
func (p *Publication) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	document, found := p.documents[r.URL.Path]
	if !found {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", documentAge)
	_, _ = w.Write(document)
}

// Authorize implements authorizer.Authorizer: anybody may read the documents, also without having said who they are.
func (p *Publication) Authorize(_ context.Context,
	attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	if _, found := p.documents[attributes.GetPath()]; found && !attributes.IsResourceRequest() &&
		attributes.GetVerb() == "get" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}
