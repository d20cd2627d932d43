// Package session keeps who is logged in to the dashboard, in cookies that only the server can read. The server itself
// remembers nothing of them but which were ended early.
package session

import (
	"bytes"
	"compress/flate"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Credential is what a user shows to the garden: a token, or a client certificate.
type Credential struct {
	Token       string `json:"t,omitempty"`
	Certificate []byte `json:"c,omitempty"`
	Key         []byte `json:"k,omitempty"`
}

// Hash tells credentials apart, and nothing else of them.
func (c Credential) Hash() string {
	sum := sha256.New()
	for _, part := range [][]byte{[]byte(c.Token), c.Certificate, c.Key} {
		fmt.Fprintf(sum, "%d:", len(part))
		sum.Write(part)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Ways to log in.
const (
	LoginOIDC       = "oidc"
	LoginToken      = "token"
	LoginKubeconfig = "kubeconfig"
)

// Session is somebody who is logged in.
type Session struct {
	// ID is random, and stays when the session is renewed.
	ID string `json:"id"`
	// User as the garden knows them. Limits count by it.
	User string `json:"u"`
	// CSRF is what each request that writes has to repeat.
	CSRF string `json:"x"`
	// Login says how the session began.
	Login string `json:"l"`
	// Issuer that the tokens are from, by its name; empty for other log-ins.
	Issuer string `json:"i,omitempty"`
	// Expires is when the session ends, renewed or not.
	Expires time.Time `json:"e"`
	// Credential of the user, good until CredentialExpires unless that is zero.
	Credential        Credential `json:"c"`
	CredentialExpires time.Time  `json:"ce,omitzero"`
	// Refresh is the issuer's refresh token, if it gave one. Refreshed counts how often it was used: of two copies of a
	// session, the one with the higher count has the token that the issuer takes.
	Refresh   string `json:"r,omitempty"`
	Refreshed int    `json:"rn,omitempty"`
}

// New begins a session that lasts for a while at most.
func New(user, login string, credential Credential, now time.Time, lifetime time.Duration) *Session {
	return &Session{
		ID: rand.Text(), CSRF: rand.Text(), User: user, Login: login, Credential: credential,
		Expires: now.Add(lifetime).Truncate(time.Second).UTC(),
	}
}

// Ends is when the user has to log in again.
func (s *Session) Ends() time.Time {
	if s.Refresh == "" && !s.CredentialExpires.IsZero() && s.CredentialExpires.Before(s.Expires) {
		return s.CredentialExpires
	}
	return s.Expires
}

// MayWrite tells whether a request that carries this token came from a page that knows the session.
func (s *Session) MayWrite(token string) bool {
	return subtle.ConstantTimeCompare([]byte(s.CSRF), []byte(token)) == 1
}

// Why a sealed text is not taken.
var (
	ErrTampered = errors.New("it was not written by this dashboard, or with a key that is no longer used")
	ErrExpired  = errors.New("it has expired")
)

// Keys seal values for browsers. The first one seals; any of them opens, so that a new key can take over without
// anybody being logged out.
type Keys struct{ ciphers []cipher.AEAD }

// maxPlain bounds what opens, as it is compressed.
const maxPlain = 256 << 10

// Seal writes a value so that only a server with these keys reads it, and only where the same purpose is asked for.
func (k *Keys) Seal(purpose string, value any) (string, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	writer, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := writer.Write(plain); err != nil {
		return "", err
	}
	if err := writer.Close(); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(k.ciphers[0].Seal(nil, nil, packed.Bytes(), []byte(purpose))), nil
}

// Open reads what Seal wrote for the same purpose.
func (k *Keys) Open(purpose, sealed string, into any) error {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return ErrTampered
	}
	for _, c := range k.ciphers {
		packed, err := c.Open(nil, nil, raw, []byte(purpose))
		if err != nil {
			continue
		}
		plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxPlain))
		if err != nil || json.Unmarshal(plain, into) != nil {
			return ErrTampered
		}
		return nil
	}
	return ErrTampered
}
