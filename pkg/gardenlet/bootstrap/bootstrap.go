// Package bootstrap gets gardenlet its own access to the garden: with a bootstrap token it asks for a client
// certificate through a CertificateSigningRequest, keeps the resulting kubeconfig in a Secret of the seed, and asks for
// a new certificate before the old one expires.
package bootstrap

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	// approvalTimeout bounds the wait for a certificate.
	approvalTimeout = 10 * time.Minute
	// renewAt is the part of the validity after which a certificate is renewed.
	renewAt = 0.8
)

// UserName is the user name of the gardenlet of a seed.
func UserName(seedName string) string { return gardencorev1beta1.SeedUserNamePrefix + seedName }

// Certificate is a key with its certificate, in PEM.
type Certificate struct {
	Certificate, Key []byte
}

// Request asks the garden for a client certificate for the gardenlet of the seed and waits until it is issued. config
// authenticates with a bootstrap token or with the certificate that is about to expire.
func Request(ctx context.Context, config *rest.Config, seedName string) (*Certificate, error) {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	csr, err := signingRequest(seedName, key)
	if err != nil {
		return nil, err
	}
	created, err := clientset.CertificatesV1().CertificateSigningRequests().Create(ctx, csr, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating a CertificateSigningRequest in the garden: %w", err)
	}
	certificate, err := waitForCertificate(ctx, clientset, created.Name)
	if err != nil {
		return nil, err
	}
	return &Certificate{Certificate: certificate, Key: keyPEM}, nil
}

// NewRequest returns a request for a certificate for the gardenlet of the seed, with a key that is thrown away: for
// asking whether it would be granted.
func NewRequest(seedName string) (*certificatesv1.CertificateSigningRequest, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return signingRequest(seedName, key)
}

// signingRequest returns the object that asks for the certificate.
func signingRequest(seedName string, key crypto.Signer) (*certificatesv1.CertificateSigningRequest, error) {
	template := &x509.CertificateRequest{
		Subject: pkix.Name{
			CommonName: UserName(seedName), Organization: []string{gardencorev1beta1.SeedsGroup},
		},
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, err
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "seed-csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{
				certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment,
				certificatesv1.UsageClientAuth,
			},
		},
	}, nil
}

// waitForCertificate waits until the request is approved and signed.
func waitForCertificate(ctx context.Context, clientset kubernetes.Interface, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, approvalTimeout)
	defer cancel()
	for {
		csr, err := clientset.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			certificate, err := issued(csr)
			if certificate != nil || err != nil {
				return certificate, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("CertificateSigningRequest %s was not approved and signed in %s; "+
				"is garden-controller-manager running, and may the bootstrap token's group create requests? (last "+
				"error: %v)", name, approvalTimeout, err)
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// issued returns the certificate of a request, nil if it is pending, and an error if it was refused.
func issued(csr *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	for _, condition := range csr.Status.Conditions {
		if condition.Type == certificatesv1.CertificateDenied || condition.Type == certificatesv1.CertificateFailed {
			return nil, fmt.Errorf("CertificateSigningRequest %s: %s: %s", csr.Name, condition.Type, condition.Message)
		}
	}
	if len(csr.Status.Certificate) == 0 {
		return nil, nil
	}
	return csr.Status.Certificate, nil
}

// Kubeconfig returns a kubeconfig for the server of config with the certificate.
func Kubeconfig(config *rest.Config, seedName string, certificate *Certificate) ([]byte, error) {
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	const name = "garden"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: config.Host, CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName,
			InsecureSkipTLSVerify: config.Insecure,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{seedName: {
			ClientCertificateData: certificate.Certificate, ClientKeyData: certificate.Key,
		}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: seedName}},
		CurrentContext: name,
	})
}

// Expiry reads the validity of the client certificate in config, and when it should be renewed.
func Expiry(config *rest.Config) (renew, end time.Time, err error) {
	block, _ := pem.Decode(config.CertData)
	if block == nil {
		return time.Time{}, time.Time{}, errors.New("the kubeconfig has no client certificate")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, time.Time{}, fmt.Errorf("client certificate: %w", err)
	}
	validity := certificate.NotAfter.Sub(certificate.NotBefore)
	return certificate.NotBefore.Add(time.Duration(float64(validity) * renewAt)), certificate.NotAfter, nil
}

// usable says whether the kubeconfig in a Secret has a certificate for the seed that is not about to expire.
func usable(secret *corev1.Secret, seedName string, now time.Time) (*rest.Config, bool) {
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[kubeconfigKey])
	if err != nil {
		return nil, false
	}
	block, _ := pem.Decode(config.CertData)
	if block == nil {
		return nil, false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil || certificate.Subject.CommonName != UserName(seedName) {
		return nil, false
	}
	return config, now.Before(certificate.NotAfter.Add(-time.Minute))
}
