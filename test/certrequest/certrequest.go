// Package certrequest makes the certificate requests that tests hand to what approves them.
package certrequest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"sync"
	"testing"
)

// Encode makes a request as PEM.
func Encode(t testing.TB, template *x509.CertificateRequest) []byte {
	t.Helper()
	encoded := TryEncode(template)
	if encoded == nil {
		t.Fatalf("no request can be made of %+v", template)
	}
	return encoded
}

// TryEncode is Encode for templates that nobody has checked: nil for what no request can be made of.
func TryEncode(template *x509.CertificateRequest) []byte {
	der, err := x509.CreateCertificateRequest(rand.Reader, template, signer())
	if err != nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// signer is the one key of all requests of a test's process.
var signer = sync.OnceValue(func() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
})
