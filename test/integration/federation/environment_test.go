package federation

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-garden/trellis/test/integration/environment"
	"github.com/trellis-garden/trellis/test/ports"
)

const (
	token = "admin-token"
	// fleetToken is that of the service account that the controllers have in a fleet.
	fleetToken = "federation-token"
	// aliceToken is that of a user without rights, in group developers.
	aliceToken = "alice-token"
)

// apiServers are any number of kube-apiservers on one etcd, each with a prefix of its own, and their files.
type apiServers struct {
	folder, binary, etcd string
	stops                []func()
	// started counts the kube-apiservers.
	started atomic.Int32
	// servedAPIs is where the Service of that name in fleetNamespace leads.
	servedAPIs atomic.Value
}

func newAPIServers(binary, etcd string) (*apiServers, error) {
	folder, err := os.MkdirTemp("", "federation-environment-")
	if err != nil {
		return nil, err
	}
	s := &apiServers{folder: folder, binary: binary, etcd: etcd}
	s.stops = append(s.stops, func() { _ = os.RemoveAll(folder) })
	if err := s.writeFiles(); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *apiServers) stop() {
	for i := len(s.stops) - 1; i >= 0; i-- {
		s.stops[i]()
	}
}

func (s *apiServers) writeFiles() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	authority, err := clientAuthority(key)
	if err != nil {
		return err
	}
	front, err := frontProxyClient(key, authority)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(s.file("front-proxy.crt"), front, 0o600),
		os.WriteFile(s.file("ca.crt"), authority, 0o600),
		os.WriteFile(s.file("sa.key"), pem.EncodeToMemory(block), 0o600),
		os.WriteFile(s.file("signer.crt"), authority, 0o600),
		os.WriteFile(s.file("signer.key"), pem.EncodeToMemory(block), 0o600),
		os.WriteFile(s.file("tokens"),
			[]byte(token+",admin,admin,system:masters\n"+fleetToken+
				",system:serviceaccount:kube-system:federation,federation\n"+aliceToken+",alice,alice,developers\n"),
			0o600),
	)
}

// clientAuthority signs clients' certificates, with the key of service accounts.
func clientAuthority(key *rsa.PrivateKey) ([]byte, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "clients"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour * 24),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// frontProxyClient is by what API servers show to aggregated ones who they are; its key is the authority's.
func frontProxyClient(key *rsa.PrivateKey, authority []byte) ([]byte, error) {
	block, _ := pem.Decode(authority)
	parent, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "front-proxy"}, NotBefore: parent.NotBefore,
		NotAfter: parent.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

func (s *apiServers) file(name string) string { return filepath.Join(s.folder, name) }

// startEtcd runs one in this process, which all API servers use.
func startEtcd() (endpoint string, stop func(), err error) {
	folder, err := os.MkdirTemp("", "federation-etcd-")
	if err != nil {
		return "", nil, err
	}
	etcd, err := startEtcdIn(folder)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(folder))
	}
	stop = func() {
		etcd.Close()
		_ = os.RemoveAll(folder)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd.Config().ListenClientUrls[0].String(), stop, nil
	case <-time.After(environment.StartTimeout):
		stop()
		return "", nil, fmt.Errorf("etcd did not become ready within %s", environment.StartTimeout)
	}
}

func startEtcdIn(folder string) (*embed.Etcd, error) {
	clientURL, err := url.Parse("http://" + freeAddress())
	if err != nil {
		return nil, err
	}
	peerURL, err := url.Parse("http://" + freeAddress())
	if err != nil {
		return nil, err
	}
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.UnsafeNoFsync = folder, "fatal", true
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*clientURL}, []url.URL{*clientURL}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peerURL}, []url.URL{*peerURL}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	return embed.StartEtcd(config)
}

// start runs one kube-apiserver, which knows nothing of earlier ones, and gives access to it as a cluster administrator
// until it is stopped.
func (s *apiServers) start(name string, further ...string) (config *rest.Config, stop func(), err error) {
	address := freeAddress()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, err
	}
	authority, err := os.ReadFile(s.file("ca.crt"))
	if err != nil {
		return nil, nil, err
	}
	if err := os.WriteFile(s.file(name+"-clients.crt"), authority, 0o600); err != nil {
		return nil, nil, err
	}
	if err := s.writeServingCertificate(name); err != nil {
		return nil, nil, err
	}
	prefix := fmt.Sprintf("/%s/%s-%d", filepath.Base(s.folder), name, s.started.Add(1))
	arguments := append([]string{
		"kube-apiserver",
		"--etcd-servers=" + s.etcd, "--etcd-prefix=" + prefix, "--cert-dir=" + s.file(name),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + port,
		"--client-ca-file=" + s.file(name+"-clients.crt"), "--token-auth-file=" + s.file("tokens"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + s.file("sa.key"), "--service-account-signing-key-file=" + s.file("sa.key"),
		"--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
		"--disable-admission-plugins=ServiceAccount",
		"--delete-collection-workers=16", "--enable-aggregator-routing=true",
		"--proxy-client-cert-file=" + s.file("front-proxy.crt"), "--proxy-client-key-file=" + s.file("sa.key"),
		"--requestheader-client-ca-file=" + s.file("ca.crt"), "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
	}, further...)
	command := exec.Command(s.binary, arguments...)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(s.file(name + ".log"))
	if err != nil {
		return nil, nil, err
	}
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, nil, err
	}
	stop = func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = log.Close()
	}
	return &rest.Config{
		Host: "https://" + address, BearerToken: token, QPS: 1000, Burst: 1000,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}, stop, nil
}

// writeServingCertificate writes, where a kube-apiserver looks for it, a certificate that is its own authority. One
// that it makes itself has an RSA key: making that, and signing with it, takes many times as long.
func (s *apiServers) writeServingCertificate(name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour * 24), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	certificatePEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	return errors.Join(
		os.MkdirAll(s.file(name), 0o700),
		os.WriteFile(s.file(name+"/apiserver.crt"), certificatePEM, 0o600),
		os.WriteFile(s.file(name+"/apiserver.key"), keyPEM, 0o600),
	)
}

// startControllers runs in a cluster those of Kubernetes' controllers that the test needs.
func (s *apiServers) startControllers(t *testing.T, config *rest.Config, controllers ...string) {
	t.Helper()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, InsecureSkipTLSVerify: true}
	kubeconfig.AuthInfos["c"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	kubeconfig.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	kubeconfig.CurrentContext = "c"
	file := s.file("kcm.kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, file); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(s.binary, "kube-controller-manager", "--kubeconfig="+file, "--leader-elect=false",
		"--secure-port=0",
		"--controllers="+strings.Join(controllers, ","), "--cluster-signing-cert-file="+s.file("signer.crt"),
		"--cluster-signing-key-file="+s.file("signer.key"))
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(s.file("kcm.log"))
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("kube-controller-manager: %s", text[max(0, len(text)-4000):])
		}
		_ = log.Close()
	})
}

func waitReady(config *rest.Config) error {
	client, err := rest.UnversionedRESTClientFor(unversioned(config))
	if err != nil {
		return err
	}
	// An API server that is not ready yet works, and writes, to say why: where many start, that delays them all.
	return wait.PollUntilContextTimeout(context.Background(), 300*time.Millisecond, environment.StartTimeout, true,
		func(ctx context.Context) (bool, error) {
			return client.Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
		})
}

func freeAddress() string {
	port, err := ports.Take()
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// eventually waits until a check says that there is nothing more to wait for.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	eventuallyWithin(t, environment.Patience, what, check)
}

// fourMinutes are for what has much to do on a slow machine.
const fourMinutes = 4 * time.Minute

// eventuallyWithin is for what takes long.
func eventuallyWithin(t *testing.T, limit time.Duration, what string, check func() error) {
	t.Helper()
	start := time.Now()
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Since(start) > limit {
			t.Fatalf("%s: %v", what, err)
		}
		// What has taken long need not be looked at that often.
		time.Sleep(min(20*time.Millisecond+time.Since(start)/50, limit/240))
	}
}
