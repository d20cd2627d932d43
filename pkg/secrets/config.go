package secrets

import (
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"time"
)

// Config describes a secret. Its JSON form, together with the CA that signs it, decides the secret's name, so equal
// configurations find the secret that is there already. New fields must be omitted from JSON when empty.
type Config interface {
	// SecretName is the name of the configuration, e.g. "kube-apiserver"; the Secret's name starts with it.
	SecretName() string
	// generate makes the data.
	generate(means) (material, error)
	// signingCA names the CA that signs the secret; empty when it is not signed.
	signingCA() string
	// check refuses a configuration that cannot be generated.
	check() error
}

// means are what data is generated with.
type means struct {
	// ca is nil unless the configuration asks to be signed.
	ca     *authority
	now    time.Time
	rsaKey func(bits int) (*rsa.PrivateKey, error)
}

// material is what generating a configuration yields.
type material struct {
	data map[string][]byte
	// notAfter is the end of the validity; zero when the secret does not expire.
	notAfter time.Time
}

// CertType says what a certificate may be used for.
type CertType string

// The kinds of certificates.
const (
	// CACert signs others.
	CACert CertType = "ca"
	// ServerCert is for servers.
	ServerCert CertType = "server"
	// ClientCert is for clients.
	ClientCert CertType = "client"
	// ServerClientCert is for processes that are both.
	ServerClientCert CertType = "both"
)

// KeyAlgorithm is the kind of a private key.
type KeyAlgorithm string

// The kinds of private keys.
const (
	// ECDSA is P-256, the default.
	ECDSA KeyAlgorithm = "ECDSA"
	// RSA is 2048 bits unless the configuration asks for more.
	RSA KeyAlgorithm = "RSA"
)

// Keys in the data of the secrets.
const (
	// DataKeyCertificateCA and DataKeyPrivateKeyCA hold a CA; certificates carry the certificate of their CA under
	// the former.
	DataKeyCertificateCA = "ca.crt"
	DataKeyPrivateKeyCA  = "ca.key"
	// DataKeyCertificate and DataKeyPrivateKey hold a server or client certificate.
	DataKeyCertificate = "tls.crt"
	DataKeyPrivateKey  = "tls.key"
	// DataKeyCertificateBundle holds every CA certificate that is to be trusted, in a bundle secret.
	DataKeyCertificateBundle = "bundle.crt"
	// DataKeyKubeconfig holds a kubeconfig.
	DataKeyKubeconfig = "kubeconfig"
	// DataKeyRSAPrivateKey and DataKeyRSAPublicKey hold a key pair in PEM, also when it is not RSA.
	DataKeyRSAPrivateKey = "id_rsa"
	DataKeyRSAPublicKey  = "id_rsa.pub"
	// DataKeyEncryptionKey and DataKeyEncryptionKeyName hold a key for encryption at rest.
	DataKeyEncryptionKey     = "key"
	DataKeyEncryptionKeyName = "name"
	// DataKeyWireGuardPrivateKey and DataKeyWireGuardPublicKey hold a WireGuard key pair, base64.
	DataKeyWireGuardPrivateKey = "private-key"
	DataKeyWireGuardPublicKey  = "public-key"
	// DataKeyPassword holds a random string.
	DataKeyPassword = "password"
	// DataKeyStaticTokens holds kube-apiserver's token file; DataKeyToken the token alone.
	DataKeyStaticTokens = "static_tokens.csv"
	DataKeyToken        = "token"
)

// Validities of certificates.
const (
	validityCA   = 10 * 365 * 24 * time.Hour
	validityLeaf = 365 * 24 * time.Hour
	// backdate allows for clocks that are a little behind.
	backdate = 5 * time.Minute
)

// CertificateConfig describes a certificate and its key.
type CertificateConfig struct {
	// Name of the configuration.
	Name string `json:"name"`
	// CommonName is the user name in a client certificate. Default: Name.
	CommonName string `json:"commonName,omitempty"`
	// Organization are the groups in a client certificate.
	Organization []string `json:"organization,omitempty"`
	// DNSNames and IPAddresses are the names a server answers to; order does not matter.
	DNSNames    []string `json:"dnsNames,omitempty"`
	IPAddresses []net.IP `json:"ipAddresses,omitempty"`
	// CertType is required.
	CertType CertType `json:"certType"`
	// SigningCA names the CA configuration that signs the certificate; required unless CertType is CACert.
	SigningCA string `json:"-"`
	// SignedByOldCA has a client certificate signed by the CA of before a rotation for as long as that is kept. It is
	// for clients of servers that learn late of a new CA. Certificates of servers are always signed so: clients that
	// know the old CA only have to trust them until the rotation is completed.
	SignedByOldCA bool `json:"-"`
	// Validity defaults to ten years for a CA, a year otherwise.
	Validity time.Duration `json:"validity,omitempty"`
	// KeyAlgorithm defaults to ECDSA.
	KeyAlgorithm KeyAlgorithm `json:"keyAlgorithm,omitempty"`
}

// KubeconfigConfig describes a kubeconfig for a client certificate or a token file.
type KubeconfigConfig struct {
	// Name of the configuration.
	Name string `json:"name"`
	// Server is the URL of the API server.
	Server string `json:"server"`
	// ServerCA names the CA configuration whose bundle the API server's certificate is verified with; default "ca".
	ServerCA string `json:"-"`
	// Context names cluster, user and context; default Name.
	Context string `json:"context,omitempty"`
	// Namespace is the default namespace of the context.
	Namespace string `json:"namespace,omitempty"`
	// TokenFile is a path to read a token from; used when User is empty.
	TokenFile string `json:"tokenFile,omitempty"`
	// User and Groups go into a client certificate signed by SigningCA.
	User   string   `json:"user,omitempty"`
	Groups []string `json:"groups,omitempty"`
	// SigningCA names the CA configuration that signs the client certificate; default "ca-client". Only with User.
	SigningCA string `json:"-"`
	// Validity of the client certificate; default a year.
	Validity time.Duration `json:"validity,omitempty"`

	// bundle is the CA bundle, filled in by the manager; its content is part of the checksum.
	bundle []byte
}

// KeyConfig describes a key pair, e.g. for signing service account tokens.
type KeyConfig struct {
	// Name of the configuration.
	Name string `json:"name"`
	// Algorithm defaults to RSA, which every consumer of service account tokens can verify.
	Algorithm KeyAlgorithm `json:"algorithm,omitempty"`
	// Bits of an RSA key; default 2048.
	Bits int `json:"bits,omitempty"`
}

// StaticTokenConfig describes a random bearer token of a user, in the form of kube-apiserver's token file.
type StaticTokenConfig struct {
	// Name of the configuration.
	Name string `json:"name"`
	// User, UID (default User) and Groups of the token.
	User   string   `json:"user"`
	UID    string   `json:"uid,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// EncryptionKeyConfig describes a 32 byte key for encryption at rest.
type EncryptionKeyConfig struct {
	// Name of the configuration.
	Name string `json:"name"`
}

// WireGuardKeyPairConfig describes a WireGuard key pair.
type WireGuardKeyPairConfig struct {
	// Name of the configuration.
	Name string `json:"name"`
}

// RandomConfig describes a random string of letters and digits.
type RandomConfig struct {
	// Name of the configuration.
	Name string `json:"name"`
	// Length of the string; default 32.
	Length int `json:"length,omitempty"`
}

// DataConfig describes a secret whose data is given: rendered configuration that must be immutable and named by its
// content, so that a change rolls the pods that mount it.
type DataConfig struct {
	// Name of the configuration.
	Name string `json:"name"`
	// Data of the secret.
	Data map[string][]byte `json:"data"`
}

// SecretName implements Config.
func (c CertificateConfig) SecretName() string { return c.Name }

// SecretName implements Config.
func (c KubeconfigConfig) SecretName() string { return c.Name }

// SecretName implements Config.
func (c KeyConfig) SecretName() string { return c.Name }

// SecretName implements Config.
func (c StaticTokenConfig) SecretName() string { return c.Name }

// SecretName implements Config.
func (c EncryptionKeyConfig) SecretName() string { return c.Name }

// SecretName implements Config.
func (c WireGuardKeyPairConfig) SecretName() string { return c.Name }

// SecretName implements Config.
func (c RandomConfig) SecretName() string { return c.Name }

// SecretName implements Config.
func (c DataConfig) SecretName() string { return c.Name }

func (c CertificateConfig) signingCA() string { return c.SigningCA }
func (c KubeconfigConfig) signingCA() string {
	if c.User == "" {
		return ""
	}
	return orDefault(c.SigningCA, "ca-client")
}

// signedByOldCA tells whether a CA that is being replaced signs the certificate still.
func (c CertificateConfig) signedByOldCA() bool {
	return c.SignedByOldCA || c.CertType == ServerCert || c.CertType == ServerClientCert
}

func (KeyConfig) signingCA() string              { return "" }
func (StaticTokenConfig) signingCA() string      { return "" }
func (EncryptionKeyConfig) signingCA() string    { return "" }
func (WireGuardKeyPairConfig) signingCA() string { return "" }
func (RandomConfig) signingCA() string           { return "" }
func (DataConfig) signingCA() string             { return "" }

func (c CertificateConfig) check() error {
	switch c.CertType {
	case CACert:
		if c.SigningCA != "" {
			return fmt.Errorf("a CA is self-signed, but signing CA %q is given", c.SigningCA)
		}
	case ServerCert, ClientCert, ServerClientCert:
		if c.SigningCA == "" {
			return fmt.Errorf("no signing CA is given")
		}
	default:
		return fmt.Errorf("certificate type %q is unknown", c.CertType)
	}
	return nil
}

func (c KubeconfigConfig) check() error {
	if c.Server == "" || (c.User == "") == (c.TokenFile == "") {
		return fmt.Errorf("a kubeconfig needs a server and either a user or a token file")
	}
	return nil
}
func (KeyConfig) check() error              { return nil }
func (StaticTokenConfig) check() error      { return nil }
func (EncryptionKeyConfig) check() error    { return nil }
func (WireGuardKeyPairConfig) check() error { return nil }
func (RandomConfig) check() error           { return nil }
func (DataConfig) check() error             { return nil }

// checksum names the configuration's content: 8 hexadecimal characters over its JSON form and the secrets it is made
// from.
func checksum(config Config, sources ...string) (string, error) {
	data, err := json.Marshal(config)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%T\n%s\n", config, data)
	for _, source := range sources {
		fmt.Fprintln(hash, source)
	}
	return hex.EncodeToString(hash.Sum(nil))[:8], nil
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
