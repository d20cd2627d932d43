package secrets

import (
	"bytes"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"strings"
	"time"

	clientcmdlatest "k8s.io/client-go/tools/clientcmd/api/latest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"k8s.io/apimachinery/pkg/runtime"
)

// authority is a CA that can sign.
type authority struct {
	certificate *x509.Certificate
	pem         []byte
	key         crypto.Signer
}

func parseAuthority(data map[string][]byte) (*authority, error) {
	certificate, err := ParseCertificate(data[DataKeyCertificateCA])
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data[DataKeyPrivateKeyCA])
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM block", DataKeyPrivateKeyCA)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", DataKeyPrivateKeyCA, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s is a %T, which cannot sign", DataKeyPrivateKeyCA, key)
	}
	return &authority{certificate: certificate, pem: data[DataKeyCertificateCA], key: signer}, nil
}

// ParseCertificate reads the first certificate of a PEM file.
func ParseCertificate(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("no PEM block")
	}
	return x509.ParseCertificate(block.Bytes)
}

func (c CertificateConfig) generate(with means) (material, error) {
	ca := with.ca
	key, keyPEM, err := with.newKey(orDefault(c.KeyAlgorithm, ECDSA), 2048)
	if err != nil {
		return material{}, err
	}
	template, err := c.template(with.now)
	if err != nil {
		return material{}, err
	}
	if c.CertType == CACert {
		ca = &authority{certificate: template, key: key}
	} else if template.NotAfter.After(ca.certificate.NotAfter) {
		template.NotAfter = ca.certificate.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, key.Public(), ca.key)
	if err != nil {
		return material{}, err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	data := map[string][]byte{DataKeyCertificate: certPEM, DataKeyPrivateKey: keyPEM, DataKeyCertificateCA: ca.pem}
	if c.CertType == CACert {
		data = map[string][]byte{DataKeyCertificateCA: certPEM, DataKeyPrivateKeyCA: keyPEM}
	}
	return material{data: data, notAfter: template.NotAfter}, nil
}

func (c CertificateConfig) template(now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: orDefault(c.CommonName, c.Name), Organization: c.Organization},
		NotBefore:    now.Add(-backdate).UTC(),
		DNSNames:     c.DNSNames,
		IPAddresses:  c.IPAddresses,
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,

		BasicConstraintsValid: true,
	}
	validity := validityLeaf
	switch c.CertType {
	case CACert:
		validity = validityCA
		template.IsCA = true
		template.KeyUsage |= x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	case ServerCert:
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	case ClientCert:
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	case ServerClientCert:
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	template.NotAfter = now.Add(orDefault(c.Validity, validity)).UTC()
	return template, nil
}

// normalized returns the configuration with its names in one order, so that order does not change the checksum.
func (c CertificateConfig) normalized() CertificateConfig {
	c.DNSNames = slices.Compact(slices.Sorted(slices.Values(c.DNSNames)))
	c.IPAddresses = slices.Clone(c.IPAddresses)
	slices.SortFunc(c.IPAddresses, func(a, b net.IP) int { return bytes.Compare(a.To16(), b.To16()) })
	c.IPAddresses = slices.CompactFunc(c.IPAddresses, net.IP.Equal)
	return c
}

func (c KubeconfigConfig) generate(with means) (material, error) {
	user := clientcmdv1.AuthInfo{TokenFile: c.TokenFile}
	result := material{}
	if c.User != "" {
		certificate, err := CertificateConfig{
			Name: c.Name, CommonName: c.User, Organization: c.Groups, CertType: ClientCert, Validity: c.Validity,
		}.generate(with)
		if err != nil {
			return material{}, err
		}
		result.notAfter = certificate.notAfter
		user.ClientCertificateData = certificate.data[DataKeyCertificate]
		user.ClientKeyData = certificate.data[DataKeyPrivateKey]
	}
	kubeconfig, err := encodeKubeconfig(orDefault(c.Context, c.Name), c.Server, c.Namespace, c.bundle, user)
	result.data = map[string][]byte{DataKeyKubeconfig: kubeconfig}
	return result, err
}

func encodeKubeconfig(name, server, namespace string, bundle []byte, user clientcmdv1.AuthInfo) ([]byte, error) {
	return runtime.Encode(clientcmdlatest.Codec, &clientcmdv1.Config{
		CurrentContext: name,
		Clusters: []clientcmdv1.NamedCluster{{
			Name: name, Cluster: clientcmdv1.Cluster{Server: server, CertificateAuthorityData: bundle},
		}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: name, AuthInfo: user}},
		Contexts: []clientcmdv1.NamedContext{{
			Name: name, Context: clientcmdv1.Context{Cluster: name, AuthInfo: name, Namespace: namespace},
		}},
	})
}

func (c KeyConfig) generate(with means) (material, error) {
	key, private, err := with.newKey(orDefault(c.Algorithm, RSA), orDefault(c.Bits, 2048))
	if err != nil {
		return material{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return material{}, err
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return material{data: map[string][]byte{DataKeyRSAPrivateKey: private, DataKeyRSAPublicKey: public}}, nil
}

func (c StaticTokenConfig) generate(means) (material, error) {
	token, err := randomString(64)
	if err != nil {
		return material{}, err
	}
	line := fmt.Sprintf("%s,%s,%s,%q\n", token, c.User, orDefault(c.UID, c.User), strings.Join(c.Groups, ","))
	return material{data: map[string][]byte{DataKeyStaticTokens: []byte(line), DataKeyToken: []byte(token)}}, nil
}

func (c EncryptionKeyConfig) generate(with means) (material, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return material{}, err
	}
	return material{data: map[string][]byte{
		DataKeyEncryptionKey:     []byte(base64.StdEncoding.EncodeToString(key)),
		DataKeyEncryptionKeyName: fmt.Appendf(nil, "key%d", with.now.Unix()),
	}}, nil
}

func (c WireGuardKeyPairConfig) generate(means) (material, error) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return material{}, err
	}
	return material{data: map[string][]byte{
		DataKeyWireGuardPrivateKey: []byte(base64.StdEncoding.EncodeToString(key.Bytes())),
		DataKeyWireGuardPublicKey:  []byte(base64.StdEncoding.EncodeToString(key.PublicKey().Bytes())),
	}}, nil
}

func (c RandomConfig) generate(means) (material, error) {
	value, err := randomString(orDefault(c.Length, 32))
	return material{data: map[string][]byte{DataKeyPassword: []byte(value)}}, err
}

func (c DataConfig) generate(means) (material, error) {
	return material{data: c.Data}, nil
}

func (m means) newKey(algorithm KeyAlgorithm, bits int) (crypto.Signer, []byte, error) {
	var key crypto.Signer
	var err error
	switch algorithm {
	case ECDSA:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case RSA:
		key, err = m.rsaKey(bits)
	default:
		err = fmt.Errorf("key algorithm %q is unknown", algorithm)
	}
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func newRSAKey(bits int) (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, bits) }

func randomString(length int) (string, error) {
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	value := make([]byte, length)
	for i := range value {
		index, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
		if err != nil {
			return "", err
		}
		value[i] = alphabet[index.Int64()]
	}
	return string(value), nil
}
