package landscape

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// pki makes the certificates of the runtime cluster's own control plane. They lie in one folder of the node and are
// kept until they are about to expire or no longer say what they should. (Certificates inside of the cluster are the
// business of package secrets; this one exists before there is a cluster.)
type pki struct {
	dir string
	// authorities is the folder of those that sign, when it is another.
	authorities string
}

const (
	caValidity          = 10 * 365 * 24 * time.Hour
	certificateValidity = 365 * 24 * time.Hour
	renewBefore         = 30 * 24 * time.Hour
)

// certificate says what a certificate is for.
type certificate struct {
	// name of its files, <name>.crt and <name>.key.
	name string
	// ca is the name of the authority that signs it.
	ca string
	// user and groups are who a client is; a server's user is only a label.
	user   string
	groups []string
	// hosts are DNS names and IP addresses of a server. A certificate without them is for clients.
	hosts []string
	// both marks a server that also calls others with the same certificate.
	both bool
}

// signers is where the authorities lie.
func (p pki) signers() pki { return pki{dir: cmp.Or(p.authorities, p.dir)} }

func (p pki) file(name string) string { return filepath.Join(p.dir, name) }

// authority makes a certificate authority unless there is one.
func (p pki) authority(name string) error {
	if _, _, err := p.load(name); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := newTemplate(pkix.Name{CommonName: "trellis-landscape-" + name}, caValidity)
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	return p.sign(name, template, template, key, key)
}

// issue makes a certificate unless there is a good one.
func (p pki) issue(want certificate) error {
	issuer, issuerKey, err := p.signers().load(want.ca)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", want.name, err)
	}
	template := want.template()
	if current, _, err := p.load(want.name); err == nil && stillGood(current, template, issuer, time.Now()) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return p.sign(want.name, template, issuer, key, issuerKey)
}

func (c certificate) template() *x509.Certificate {
	template := newTemplate(pkix.Name{CommonName: c.user, Organization: c.groups}, certificateValidity)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	for _, host := range c.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if len(c.hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if len(c.hosts) == 0 || c.both {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	return template
}

func newTemplate(subject pkix.Name, validity time.Duration) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{Subject: subject, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(validity)}
}

// stillGood says whether a certificate can stay: signed by this issuer, says the same, and lives for a while.
func stillGood(current, want, issuer *x509.Certificate, now time.Time) bool {
	return current.CheckSignatureFrom(issuer) == nil &&
		now.Add(renewBefore).Before(current.NotAfter) &&
		current.Subject.CommonName == want.Subject.CommonName &&
		slices.Equal(current.Subject.Organization, want.Subject.Organization) &&
		slices.Equal(current.DNSNames, want.DNSNames) &&
		slices.EqualFunc(current.IPAddresses, want.IPAddresses, net.IP.Equal) &&
		slices.Equal(current.ExtKeyUsage, want.ExtKeyUsage)
}

// sign creates a certificate and writes it with its key, the key first: a certificate without its key would be kept.
func (p pki) sign(name string, template, issuer *x509.Certificate, key *ecdsa.PrivateKey,
	issuerKey crypto.Signer) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), issuerKey)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", name, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", name, err)
	}
	if err := replaceFile(p.file(name+".key"), encodePEM("EC PRIVATE KEY", keyDER), 0o600); err != nil {
		return fmt.Errorf("certificate %s: %w", name, err)
	}
	return replaceFile(p.file(name+".crt"), encodePEM("CERTIFICATE", der), 0o644)
}

// load reads a certificate and its key.
func (p pki) load(name string) (*x509.Certificate, crypto.Signer, error) {
	pair, err := os.ReadFile(p.file(name + ".crt"))
	if err != nil {
		return nil, nil, err
	}
	block, _ := pem.Decode(pair)
	keyData, err := os.ReadFile(p.file(name + ".key"))
	if err != nil {
		return nil, nil, err
	}
	keyBlock, _ := pem.Decode(keyData)
	if block == nil || keyBlock == nil {
		return nil, nil, fmt.Errorf("%s.crt or .key in %s is not PEM; remove both and try again", name, p.dir)
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", p.file(name+".crt"), err)
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", p.file(name+".key"), err)
	}
	return parsed, key, nil
}

// serviceAccountKey makes the key that signs service account tokens, as sa.key and sa.pub.
func (p pki) serviceAccountKey() error {
	if _, err := os.Stat(p.file("sa.pub")); err == nil {
		return nil
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := replaceFile(p.file("sa.key"), encodePEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)),
		0o600); err != nil {
		return err
	}
	return replaceFile(p.file("sa.pub"), encodePEM("PUBLIC KEY", public), 0o644)
}

func encodePEM(kind string, der []byte) []byte {
	var out bytes.Buffer
	// Writing to a buffer does not fail.
	_ = pem.Encode(&out, &pem.Block{Type: kind, Bytes: der})
	return out.Bytes()
}

// kubeconfig returns a kubeconfig for the owner of a client certificate, with everything in it.
func (p pki) kubeconfig(server, tlsServerName, ca, client string) ([]byte, error) {
	var contents [3][]byte
	for i, name := range []string{ca + ".crt", client + ".crt", client + ".key"} {
		data, err := os.ReadFile(p.file(name))
		if err != nil {
			return nil, fmt.Errorf("kubeconfig of %s: %w", client, err)
		}
		contents[i] = data
	}
	return encodeKubeconfig(
		clientcmdapi.Cluster{Server: server, TLSServerName: tlsServerName, CertificateAuthorityData: contents[0]},
		clientcmdapi.AuthInfo{ClientCertificateData: contents[1], ClientKeyData: contents[2]},
	)
}

// encodeKubeconfig writes a kubeconfig with one context.
func encodeKubeconfig(cluster clientcmdapi.Cluster, user clientcmdapi.AuthInfo) ([]byte, error) {
	const name = "landscape"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &cluster
	config.AuthInfos[name] = &user
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}
