package objectstore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	rootFile = "root.json"
	caFile   = "ca.crt"
	usersDir = "users"
	// certificateFile and keyFile are those of the gateway.
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
	// validity of authority and certificate, which are made once: the store is as old as its landscape.
	validity = 10 * 365 * 24 * time.Hour
)

// Files is the folder that the store shares with its gateway.
type Files struct{ Dir string }

// User is somebody who signs requests.
type User struct {
	AccessKeyID     string `json:"accessKeyID"`
	SecretAccessKey string `json:"secretAccessKey"`
}

// Root is the administrator of the store.
func (f Files) Root() (User, error) { return readUser(f.path(rootFile)) }

// User returns the one with an access key; fs.ErrNotExist if there is none.
func (f Files) User(accessKeyID string) (User, error) {
	if accessKeyID != filepath.Base(accessKeyID) {
		return User{}, fs.ErrNotExist
	}
	return readUser(f.path(usersDir, accessKeyID+".json"))
}

// Certificate and Key are those that the gateway serves with.
func (f Files) Certificate() (certificate, key string) {
	return f.path(certificateFile), f.path(keyFile)
}

// Objects, Metadata are the folders of buckets and what is told of their objects.
func (f Files) Objects() (objects, metadata string) { return f.path("objects"), f.path("metadata") }

// ensureUser returns the user of a bucket, whose access key is the bucket's name.
func (f Files) ensureUser(bucket string) (User, error) {
	return ensure(f.path(usersDir, bucket+".json"), bucket)
}

func (f Files) removeUser(bucket string) error {
	err := os.Remove(f.path(usersDir, bucket+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// prepare writes what is missing.
func (f Files) prepare(address string) error {
	objects, metadata := f.Objects()
	for _, dir := range []string{f.Dir, f.path(usersDir), objects, metadata} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if _, err := ensure(f.path(rootFile), "administrator"); err != nil {
		return err
	}
	if _, err := os.Stat(f.path(certificateFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.makeCertificate(address)
}

// ensure reads a user, or makes one with a secret at random.
func ensure(path, accessKeyID string) (User, error) {
	user, err := readUser(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return user, err
	}
	secret := make([]byte, 20)
	if _, err := rand.Read(secret); err != nil {
		return User{}, err
	}
	user = User{AccessKeyID: accessKeyID, SecretAccessKey: hex.EncodeToString(secret)}
	text, err := json.Marshal(user)
	if err != nil {
		return User{}, err
	}
	return user, replace(path, text)
}

func readUser(path string) (User, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return User{}, err
	}
	var user User
	if err := json.Unmarshal(text, &user); err != nil {
		return User{}, fmt.Errorf("decoding %s: %w", path, err)
	}
	return user, nil
}

// replace writes a file that only its owner reads; a reader finds the old content or the new one.
func replace(path string, content []byte) error {
	temporary := path + ".new"
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// makeCertificate makes an authority, whose key is forgotten, and the certificate of the gateway, which is last: with
// it all are there.
func (f Files) makeCertificate(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	authority, authorityKey, err := sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "local-cloud-objects-ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "local-cloud-objects"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	certificate, key, err := sign(template, authority, authorityKey)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		replace(f.path(caFile), encode("CERTIFICATE", authority.Raw)),
		replace(f.path(keyFile), encode("PRIVATE KEY", der)),
		replace(f.path(certificateFile), encode("CERTIFICATE", certificate.Raw)),
	)
}

// sign makes a certificate; without an authority it signs itself.
func sign(template, authority *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if authority == nil {
		authority, by = template, key
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template.NotBefore, template.NotAfter = now.Add(-time.Minute), now.Add(validity)
	der, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), by)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return certificate, key, err
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
