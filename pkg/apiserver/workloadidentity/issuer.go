// Package workloadidentity issues tokens of WorkloadIdentities: the subresource workloadidentities/token. A token is a
// signed JWT with which controllers prove to an infrastructure who they are, so that no credentials for it are stored
// anywhere.
package workloadidentity

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// minKeyBits is the least size of a signing key; tokens are trusted from afar.
const minKeyBits = 2048

// Limits on the validity of tokens.
type Limits struct {
	// Default is for requests that ask for none.
	Default time.Duration
	// Min and Max are what is given to requests that ask for less or more.
	Min, Max time.Duration
}

// validity returns how long a token is valid when so many seconds were asked for.
func (l Limits) validity(seconds *int64) time.Duration {
	if seconds == nil {
		return min(max(l.Default, l.Min), l.Max)
	}
	// compared in seconds: more of them than a Duration holds may be asked for
	wanted := min(max(*seconds, int64(l.Min/time.Second)), int64(l.Max/time.Second))
	return time.Duration(wanted) * time.Second
}

// Issuer signs tokens.
type Issuer struct {
	url    string
	key    *rsa.PrivateKey
	keyID  string
	limits Limits
}

// NewIssuer makes an issuer: url is what tokens name as issuer, key signs them.
func NewIssuer(url string, key *rsa.PrivateKey, limits Limits) (*Issuer, error) {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return &Issuer{url: url, key: key, keyID: encode(sum[:]), limits: limits}, nil
}

// ReadKey reads a private RSA key from a file (PEM, PKCS#1 or PKCS#8).
func ReadKey(path string) (*rsa.PrivateKey, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

func parseKey(data []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("holds no PEM block")
	}
	key, err := parseBlock(block)
	if err != nil {
		return nil, err
	}
	if bits := key.N.BitLen(); bits < minKeyBits {
		return nil, fmt.Errorf("the key has %d bits, at least %d are needed", bits, minKeyBits)
	}
	return key, nil
}

func parseBlock(block *pem.Block) (*rsa.PrivateKey, error) {
	if block.Type == "RSA PRIVATE KEY" {
		return x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("holds a %T, a private RSA key is needed: tokens are signed with RS256", parsed)
	}
	return key, nil
}

// header of a token.
type header struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Type      string `json:"typ"`
}

// registeredClaims are the claims that every token has.
type registeredClaims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Audience  []string `json:"aud"`
	IssuedAt  int64    `json:"iat"`
	NotBefore int64    `json:"nbf"`
	Expiry    int64    `json:"exp"`
	ID        string   `json:"jti"`
	Claims    Claims   `json:"gardener.cloud"`
}

// Issue signs a token that is valid from now on, for about as many seconds as asked for, and tells when it expires.
func (i *Issuer) Issue(subject string, audiences []string, seconds *int64, claims Claims,
	now time.Time) (string, time.Time, error) {
	now = now.Truncate(time.Second)
	expiry := now.Add(i.limits.validity(seconds))
	token, err := i.sign(registeredClaims{
		Issuer: i.url, Subject: subject, Audience: audiences,
		IssuedAt: now.Unix(), NotBefore: now.Unix(), Expiry: expiry.Unix(),
		ID: string(uuid.NewUUID()), Claims: claims,
	})
	return token, expiry, err
}

// sign writes claims in the compact form of JWS, signed with RS256.
func (i *Issuer) sign(claims registeredClaims) (string, error) {
	head, err := json.Marshal(header{Algorithm: "RS256", KeyID: i.keyID, Type: "JWT"})
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed := encode(head) + "." + encode(payload)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("signing token: %w", err)
	}
	return signed + "." + encode(signature), nil
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }
