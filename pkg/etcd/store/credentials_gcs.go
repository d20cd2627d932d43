package store

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
)

// GCSCredentials are those of a service account, for which Google issues tokens.
type GCSCredentials struct {
	ClientEmail string
	// PrivateKey is an RSA key in PEM, PrivateKeyID what the issuer of tokens calls it.
	PrivateKey, PrivateKeyID string
	// TokenURI is where tokens are issued: a URL with https.
	TokenURI string
}

// Keys of a Secret for GCS, as they are published for gardener.
const (
	serviceAccountKey     = "serviceaccount.json"
	storageAPIEndpointKey = "storageAPIEndpoint"
)

// googleTokenURI is where Google issues tokens.
const googleTokenURI = "https://oauth2.googleapis.com/token"

// GCSCredentialsIn returns a function that reads credentials from a mounted Secret with the key serviceaccount.json,
// anew whenever it is called.
func GCSCredentialsIn(dir string) func() (GCSCredentials, error) {
	return func() (GCSCredentials, error) {
		var text string
		err := readSecret(dir, map[string]*string{serviceAccountKey: &text}, nil)
		if err == nil {
			var credentials GCSCredentials
			if credentials, err = parseServiceAccount(text); err == nil {
				return credentials, nil
			}
			err = fmt.Errorf("%s: %w", serviceAccountKey, err)
		}
		return GCSCredentials{}, fmt.Errorf("reading credentials of GCS in %s: %w", dir, err)
	}
}

// parseServiceAccount reads the key of a service account as Google gives it out. Its errors have nothing of the text.
func parseServiceAccount(text string) (GCSCredentials, error) {
	var account struct {
		Type         string `json:"type"`
		ClientEmail  string `json:"client_email"`
		PrivateKey   string `json:"private_key"`
		PrivateKeyID string `json:"private_key_id"`
		TokenURI     string `json:"token_uri"`
	}
	if json.Unmarshal([]byte(text), &account) != nil || account.Type != "service_account" {
		return GCSCredentials{}, errors.New("it is not JSON of type service_account")
	}
	if account.TokenURI == "" {
		account.TokenURI = googleTokenURI
	}
	issuer, err := parseURL(account.TokenURI)
	if err != nil || issuer.Scheme != "https" {
		return GCSCredentials{}, errors.New("its token_uri is not a URL with https")
	}
	if account.ClientEmail == "" || !isRSAKey(account.PrivateKey) {
		return GCSCredentials{}, errors.New("it lacks a client_email, or its private_key is not an RSA key in PEM")
	}
	return GCSCredentials{
		ClientEmail: account.ClientEmail, PrivateKey: account.PrivateKey, PrivateKeyID: account.PrivateKeyID,
		TokenURI: account.TokenURI,
	}, nil
}

func isRSAKey(text string) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return false
	}
	if _, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return true
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	_, right := key.(*rsa.PrivateKey)
	return err == nil && right
}

// GCSOptionsIn reads where a store is from a mounted Secret with the keys storageAPIEndpoint and trustedCaCert, both
// optional. Credentials are read from it whenever they are used. The bucket is for the caller to set.
func GCSOptionsIn(dir string) (GCSOptions, error) {
	options := GCSOptions{Credentials: GCSCredentialsIn(dir)}
	var ca string
	err := readSecret(dir, nil, map[string]*string{storageAPIEndpointKey: &options.Endpoint, caKey: &ca})
	if err != nil {
		return GCSOptions{}, fmt.Errorf("reading settings of GCS in %s: %w", dir, err)
	}
	options.CA = []byte(ca)
	return options, nil
}
