package environment

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime of all certificates of an environment.
const lifetime = 24 * time.Hour

// authority signs the certificates of an environment.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         []byte
}

// pair is a certificate and its key in PEM.
type pair struct{ certificate, key []byte }

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{certificate, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// issue makes a certificate that serves and authenticates, whichever is asked of it.
func (a *authority) issue(subject pkix.Name, names ...string) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: subject,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		DNSNames:    names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &pair{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

// files are the paths of a pair on disk.
type files struct{ certificate, key string }

func (p *pair) write(folder, name string) (files, error) {
	result := files{filepath.Join(folder, name+".crt"), filepath.Join(folder, name+".key")}
	if err := os.WriteFile(result.certificate, p.certificate, 0o600); err != nil {
		return result, err
	}
	return result, os.WriteFile(result.key, p.key, 0o600)
}

// writeSigningKey makes a key that signs tokens of workload identities.
func writeSigningKey(path string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{
		Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key),
	}), 0o600)
}

// pki is everything that the processes of an environment need.
type pki struct {
	clusterCA, frontProxyCA         *authority
	clusterCAFile, frontProxyCAFile string
	kubeAPIServer, gardenAPIServer  files
	frontProxy, serviceAccounts     files
}

func newPKI(folder string) (*pki, error) {
	clusterCA, err := newAuthority("cluster")
	if err != nil {
		return nil, err
	}
	frontProxyCA, err := newAuthority("front-proxy")
	if err != nil {
		return nil, err
	}
	result := &pki{
		clusterCA: clusterCA, frontProxyCA: frontProxyCA,
		clusterCAFile:    filepath.Join(folder, "cluster-ca.crt"),
		frontProxyCAFile: filepath.Join(folder, "front-proxy-ca.crt"),
	}
	for file, content := range map[string][]byte{
		result.clusterCAFile: clusterCA.pem, result.frontProxyCAFile: frontProxyCA.pem,
	} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return nil, err
		}
	}
	certificates := []struct {
		into      *files
		authority *authority
		name      string
		dnsNames  []string
	}{
		{&result.kubeAPIServer, clusterCA, "kube-apiserver", []string{"localhost", "kubernetes"}},
		{&result.gardenAPIServer, clusterCA, "garden-apiserver", []string{"localhost", "garden-apiserver.garden.svc"}},
		{&result.frontProxy, frontProxyCA, "front-proxy", nil},
		{&result.serviceAccounts, clusterCA, "service-accounts", nil},
	}
	for _, c := range certificates {
		issued, err := c.authority.issue(pkix.Name{CommonName: c.name}, c.dnsNames...)
		if err != nil {
			return nil, fmt.Errorf("certificate of %s: %w", c.name, err)
		}
		if *c.into, err = issued.write(folder, c.name); err != nil {
			return nil, err
		}
	}
	return result, nil
}
