// Package kubeconfig issues short-lived kubeconfigs for shoots: the subresources shoots/adminkubeconfig and
// shoots/viewerkubeconfig. A kubeconfig holds a client certificate signed by the shoot's client CA, so nothing that
// gives access to a shoot is stored anywhere.
package kubeconfig

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

const (
	// clientKeyBits is the size of client keys. gardenlogin accepts RSA keys only.
	clientKeyBits = 2048
	// clockSkew is how far clocks of garden and shoot may be apart.
	clockSkew = 2 * time.Minute
)

// Signer signs client certificates with the client CA of one shoot.
type Signer struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// NewSigner reads a CA from PEM: a certificate and its key (PKCS#1, PKCS#8 or SEC 1).
func NewSigner(certificatePEM, keyPEM []byte) (*Signer, error) {
	block, _ := pem.Decode(certificatePEM)
	if block == nil {
		return nil, errors.New("ca.crt holds no PEM block")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("ca.crt: %w", err)
	}
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("ca.key: %w", err)
	}
	return &Signer{certificate: certificate, key: key}, nil
}

func parseKey(keyPEM []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil, errors.New("holds no PEM block")
	}
	switch block.Type {
	case "RSA PRIVATE KEY":
		return x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(block.Bytes)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	return signer, nil
}

// Identity is who a client certificate speaks for.
type Identity struct {
	User         string
	Organization string
}

// ClientCertificate makes a key and a certificate for the identity, valid from a moment before now until the end.
// Both are single PEM blocks; the key is of type "RSA PRIVATE KEY".
func (s *Signer) ClientCertificate(identity Identity, now, end time.Time) (certificatePEM, keyPEM []byte, err error) {
	key, err := rsa.GenerateKey(rand.Reader, clientKeyBits)
	if err != nil {
		return nil, nil, fmt.Errorf("client key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: identity.User, Organization: []string{identity.Organization}},
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     end,
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.certificate, key.Public(), s.key)
	if err != nil {
		return nil, nil, fmt.Errorf("signing client certificate: %w", err)
	}
	certificatePEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return certificatePEM, keyPEM, nil
}
