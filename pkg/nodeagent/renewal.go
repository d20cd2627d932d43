package nodeagent

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	// kubeletCertificates is where the kubelet keeps its certificates.
	kubeletCertificates = "/var/lib/kubelet/pki"
	// servingCertificate is the one that the kubelet serves with; it asks for one when it has none.
	servingCertificate = "kubelet-server-current.pem"
	// clientCertificate begins the names of those that the kubelet authenticates with.
	clientCertificate = "kubelet-client"
	// renewalTimeout bounds the wait for a certificate.
	renewalTimeout = time.Minute
)

// renewCredentials gets the kubelet a client certificate of the authority that a rotation has introduced, and has it
// trust that authority. Nothing is taken away before what replaces it is there, so this may be repeated. The kubelet
// takes it over, and asks for a serving certificate, when it is started again.
func (a *Agent) renewCredentials(ctx context.Context, client kubernetes.Interface, wanted *desired) error {
	bundle, err := wanted.content(ClusterCAPath)
	if err != nil {
		return err
	}
	certificatePEM, keyPEM, err := a.requestCertificate(ctx, client)
	if err != nil {
		return fmt.Errorf("getting a client certificate for the kubelet: %w", err)
	}
	dir := a.machine.path(kubeletCertificates)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	store, err := certificate.NewFileStore(clientCertificate, dir, dir, "", "")
	if err != nil {
		return err
	}
	if _, err := store.Update(certificatePEM, keyPEM); err != nil {
		return fmt.Errorf("keeping the kubelet's client certificate: %w", err)
	}
	if err := a.trust(bundle); err != nil {
		return err
	}
	err = os.Remove(filepath.Join(dir, servingCertificate))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	a.log.Info("Renewed the kubelet's certificates")
	return nil
}

// requestCertificate asks for a certificate as kubelets do for their next one, which the cluster approves by itself.
func (a *Agent) requestCertificate(ctx context.Context,
	client kubernetes.Interface) (certificatePEM, keyPEM []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, renewalTimeout)
	defer cancel()
	name, err := a.nodeName()
	if err != nil {
		return nil, nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return nil, nil, err
	}
	request, err := certutil.MakeCSR(key,
		&pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	requestName, uid, err := csr.RequestCertificateWithContext(ctx, client, request, "",
		certificatesv1.KubeAPIServerClientKubeletSignerName, nil,
		[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}, key)
	if err != nil {
		return nil, nil, err
	}
	certificatePEM, err = csr.WaitForCertificate(ctx, client, requestName, uid)
	return certificatePEM, keyPEM, err
}

// trust has the kubelet, and node-agent with it, verify the API server with a bundle.
func (a *Agent) trust(bundle []byte) error {
	path := a.machine.path(KubeletKubeconfigPath)
	kubeconfig, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return fmt.Errorf("reading the kubelet's kubeconfig: %w", err)
	}
	for _, cluster := range kubeconfig.Clusters {
		cluster.CertificateAuthority, cluster.CertificateAuthorityData = "", bundle
	}
	data, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return err
	}
	return writeIfChanged(path, data, 0o600)
}

// content is that of a file that is given inline.
func (d *desired) content(path string) ([]byte, error) {
	i := slices.IndexFunc(d.Files, func(file extensionsv1alpha1.File) bool { return file.Path == path })
	if i < 0 || d.Files[i].Content.Inline == nil {
		return nil, fmt.Errorf("the configuration does not have file %s, which a rotation needs", path)
	}
	return d.Files[i].Content.Inline.Decode()
}
