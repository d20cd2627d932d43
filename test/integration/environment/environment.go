// Package environment runs a real garden API for tests: an etcd in this process, a kube-apiserver beside it, and
// garden-apiserver in this process, registered through the aggregation layer. Options.OwnProcesses makes all three
// processes of their own, which can be killed and started again. Everything listens on loopback addresses and keeps its
// files in one temporary folder.
package environment

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserver/registration"
	"github.com/trellis-garden/trellis/test/ports"
	"github.com/trellis-garden/trellis/test/precedence"
)

const (
	// binaryVariable names the Kubernetes binary that speaks as kube-apiserver when so called.
	binaryVariable = "TRELLIS_KUBERNETES_BINARY"
	// StartTimeout is what etcd, or an API server, may take until it is ready.
	StartTimeout = 5 * time.Minute
	// Patience is what anything else may take on a machine that does much at the same time.
	Patience = 3 * time.Minute
	// pollInterval is not short: an API server that is not ready yet works, and writes, to say why.
	pollInterval = 200 * time.Millisecond
	// ClusterIdentity is the name of the garden.
	ClusterIdentity = "test"
)

// Environment is a running garden API.
type Environment struct {
	// Config reaches the garden as a member of system:masters.
	Config *rest.Config
	// Client uses Config, without a cache.
	Client client.Client
	// EtcdEndpoint is the URL of etcd for clients.
	EtcdEndpoint string
	// GardenAPIServerURL is that of garden-apiserver itself, behind kube-apiserver.
	GardenAPIServerURL string
	// KubeAPIServer is always a process; Etcd and GardenAPIServer are nil unless Options.OwnProcesses.
	Etcd, KubeAPIServer, GardenAPIServer *Process

	options Options
	folder  string
	pki     *pki
	stops   []func()
}

// Options change what StartWith runs.
type Options struct {
	// Binary is a kube-apiserver when called with that as its first argument.
	Binary string
	// OwnProcesses runs etcd and garden-apiserver as processes, by executing this program again: it has to call
	// ServeProcess before anything else, which Main does. This etcd syncs to disk.
	OwnProcesses bool
	// WithoutGarden leaves garden-apiserver out: the environment is a plain Kubernetes API then.
	WithoutGarden bool
	// TokenIssuer is who garden-apiserver says that issues tokens of workload identities. Empty: it issues none.
	TokenIssuer string
	// KubeAPIServerArguments and GardenAPIServerArguments are added to the servers' arguments.
	KubeAPIServerArguments, GardenAPIServerArguments []string
}

// Main runs the tests of a package with one environment. They fail where there is no Kubernetes binary.
func Main(m *testing.M, environment **Environment) { MainWith(m, environment, Options{}) }

// MainWith is Main with options; their Binary is found by itself.
func MainWith(m *testing.M, environment **Environment, options Options) {
	ServeProcess()
	precedence.Take()
	binary, err := KubernetesBinary()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	options.Binary = binary
	os.Exit(run(m, options, environment))
}

func run(m *testing.M, options Options, environment **Environment) int {
	started, err := StartWith(context.Background(), options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the environment:", err)
		return 1
	}
	defer started.Stop()
	*environment = started
	return m.Run()
}

// KubernetesBinary finds the binary: the one that the environment names, or bin/kubernetes of the repository.
func KubernetesBinary() (string, error) {
	if path := os.Getenv(binaryVariable); path != "" {
		if err := isProgram(path); err != nil {
			return "", fmt.Errorf("%s does not name a Kubernetes binary: %w; unset it, or run make bin/kubernetes and "+
				"name that", binaryVariable, err)
		}
		return path, nil
	}
	root, err := repository()
	if err != nil {
		return "", fmt.Errorf("%w: set %s", err, binaryVariable)
	}
	path := filepath.Join(root, "bin", "kubernetes")
	if err := isProgram(path); err != nil {
		return "", fmt.Errorf("the Kubernetes binary is not built: %w; run make bin/kubernetes or set %s", err,
			binaryVariable)
	}
	return path, nil
}

// landmark is a file by which the repository is known. The Go command runs a test again when a file that it looked at
// has changed: this one never does, as go.mod does with each new module.
const landmark = "LICENSE"

// repository is the one around the working directory.
func repository() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for folder := start; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, landmark)); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("no repository around the working directory %s", start)
		}
	}
}

// isProgram checks that there is a file that may be executed.
func isProgram(path string) error {
	file, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !file.Mode().IsRegular() || file.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is no file that may be executed", path)
	}
	return nil
}

// Start starts all processes and waits until the garden's API is served. The binary is a kube-apiserver when called
// with that as its first argument. Stop has to be called when the returned error is nil.
func Start(ctx context.Context, binary string) (*Environment, error) {
	return StartWith(ctx, Options{Binary: binary})
}

// StartWith is Start with options.
func StartWith(ctx context.Context, options Options) (*Environment, error) {
	folder, err := os.MkdirTemp("", "garden-environment-")
	if err != nil {
		return nil, err
	}
	e := &Environment{folder: folder, options: options}
	e.stops = append(e.stops, func() { _ = os.RemoveAll(folder) })
	if err := e.start(ctx); err != nil {
		e.Stop()
		return nil, err
	}
	return e, nil
}

// Stop ends everything that Start began, the last first.
func (e *Environment) Stop() {
	for i := len(e.stops) - 1; i >= 0; i-- {
		e.stops[i]()
	}
	e.stops = nil
}

func (e *Environment) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	var err error
	if e.pki, err = newPKI(e.folder); err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	if err := e.startEtcd(ctx); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	if err := e.prepareAuthorization(); err != nil {
		return fmt.Errorf("authorization: %w", err)
	}
	if err := e.startKubeAPIServer(ctx); err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	if e.options.WithoutGarden {
		return nil
	}
	if err := e.startGardenAPIServer(ctx); err != nil {
		return fmt.Errorf("garden-apiserver: %w", err)
	}
	return nil
}

func (e *Environment) startEtcd(ctx context.Context) error {
	clientURL, err := freeURL("http")
	if err != nil {
		return err
	}
	peerURL, err := freeURL("http")
	if err != nil {
		return err
	}
	e.EtcdEndpoint = clientURL.String()
	arguments := []string{filepath.Join(e.folder, "etcd"), clientURL.String(), peerURL.String()}
	if e.options.OwnProcesses {
		e.Etcd, err = e.startRole(roleEtcd, arguments)
		return err
	}
	config, err := etcdConfig(arguments)
	if err != nil {
		return err
	}
	// What this process writes need not outlive it.
	config.UnsafeNoFsync = true
	etcd, err := startEtcdHere(ctx, config)
	if err == nil {
		e.stops = append(e.stops, etcd.Close)
	}
	return err
}

// startRole executes this program again as one of the environment's processes.
func (e *Environment) startRole(role string, arguments []string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return e.startProcess(&Process{name: role, path: self, environment: roleEnvironment(role, arguments)})
}

// Run starts another program with this environment, until Stop at the latest.
func (e *Environment) Run(name, path string, arguments ...string) (*Process, error) {
	return e.startProcess(&Process{name: name, path: path, arguments: arguments})
}

func (e *Environment) startProcess(p *Process) (*Process, error) {
	p.log = filepath.Join(e.folder, p.name+".log")
	e.stops = append(e.stops, p.Kill)
	return p, p.Start()
}

func (e *Environment) startKubeAPIServer(ctx context.Context) error {
	server, err := freeURL("https")
	if err != nil {
		return err
	}
	if err := e.connect(server.String()); err != nil {
		return err
	}
	arguments := append(e.kubeAPIServerArguments(server.Port()), e.options.KubeAPIServerArguments...)
	e.KubeAPIServer, err = e.startProcess(&Process{
		name: "kube-apiserver", path: e.options.Binary, arguments: append([]string{"kube-apiserver"}, arguments...),
	})
	if err != nil {
		return err
	}
	if err := e.waitReady(ctx, "/readyz"); err != nil {
		return fmt.Errorf("%w; end of its log:\n%s", err, tail(e.KubeAPIServer.log))
	}
	return nil
}

// Restart kills processes of the environment, starts them again, and waits until the garden's API is served.
func (e *Environment) Restart(ctx context.Context, processes ...*Process) error {
	for _, process := range processes {
		process.Kill()
	}
	for _, process := range processes {
		if err := process.Start(); err != nil {
			return err
		}
	}
	if err := e.waitReady(ctx, "/readyz"); err != nil {
		return err
	}
	return registration.WaitUntilServed(ctx, e.Config)
}

func (e *Environment) kubeAPIServerArguments(port string) []string {
	return []string{
		"--etcd-servers=" + e.EtcdEndpoint,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + port,
		"--tls-cert-file=" + e.pki.kubeAPIServer.certificate, "--tls-private-key-file=" + e.pki.kubeAPIServer.key,
		"--client-ca-file=" + e.pki.clusterCAFile,
		"--requestheader-client-ca-file=" + e.pki.frontProxyCAFile, "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + e.pki.frontProxy.certificate, "--proxy-client-key-file=" + e.pki.frontProxy.key,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + e.pki.serviceAccounts.certificate,
		"--service-account-signing-key-file=" + e.pki.serviceAccounts.key,
		"--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
		"--authorization-config=" + e.authorizationFile(), "--enable-bootstrap-token-auth",
		"--disable-admission-plugins=ServiceAccount",
	}
}

// connect makes the clients of the environment.
func (e *Environment) connect(server string) error {
	config, err := e.ConfigFor(server, "admin", "system:masters")
	if err != nil {
		return err
	}
	e.Config = config
	return nil
}

// ConfigFor returns the configuration of a client that authenticates as a user with a certificate.
func (e *Environment) ConfigFor(server, user string, groups ...string) (*rest.Config, error) {
	issued, err := e.pki.clusterCA.issue(pkix.Name{CommonName: user, Organization: groups})
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: server, QPS: 1000, Burst: 1000,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: e.pki.clusterCA.pem, CertData: issued.certificate, KeyData: issued.key,
		},
	}, nil
}

// ClientAuthority is the certificate and the key, both in PEM, of the authority by which clients of the environment are
// known: whom it makes certificates for may come in.
func (e *Environment) ClientAuthority() (certificate, key []byte, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(e.pki.clusterCA.key)
	if err != nil {
		return nil, nil, err
	}
	return e.pki.clusterCA.pem, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// ClientFor returns a client that authenticates as a user.
func (e *Environment) ClientFor(user string, groups ...string) (client.Client, error) {
	config, err := e.ConfigFor(e.Config.Host, user, groups...)
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: apis.GardenScheme()})
}

// startGardenAPIServer registers garden-apiserver, runs it, and waits until it is reached through the kube-apiserver.
func (e *Environment) startGardenAPIServer(ctx context.Context) error {
	listen, err := url.Parse(e.GardenAPIServerURL)
	if err != nil {
		return err
	}
	if err := e.register(ctx, listen.Port()); err != nil {
		return err
	}
	kubeconfig, err := e.Kubeconfig(gardencorev1beta1.GardenAPIServerUser)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	arguments := e.gardenAPIServerArguments(listen.Port(), kubeconfig)
	if issuer := e.options.TokenIssuer; issuer != "" {
		key := filepath.Join(e.folder, "workload-identities.key")
		if err := writeSigningKey(key); err != nil {
			return err
		}
		arguments = append(arguments, "--workload-identity-token-issuer="+issuer,
			"--workload-identity-signing-key-file="+key)
	}
	if err := e.runGardenAPIServer(append(arguments, e.options.GardenAPIServerArguments...), failed); err != nil {
		return err
	}
	return e.waitRegistered(ctx, failed)
}

// register makes the objects by which kube-apiserver finds garden-apiserver.
func (e *Environment) register(ctx context.Context, listen string) (err error) {
	var port int32
	if _, err := fmt.Sscan(listen, &port); err != nil {
		return err
	}
	if e.Client, err = client.New(e.Config, client.Options{Scheme: apis.GardenScheme()}); err != nil {
		return err
	}
	for _, object := range registration.Objects(registration.Target{
		Host: "localhost", Port: port, CABundle: e.pki.clusterCA.pem,
	}) {
		if err := e.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("%T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

func (e *Environment) gardenAPIServerArguments(port, kubeconfig string) []string {
	return []string{
		"--etcd-servers=" + e.EtcdEndpoint, "--bind-address=127.0.0.1", "--secure-port=" + port,
		"--tls-cert-file=" + e.pki.gardenAPIServer.certificate, "--tls-private-key-file=" + e.pki.gardenAPIServer.key,
		"--kubeconfig=" + kubeconfig, "--cluster-identity=" + ClusterIdentity,
	}
}

// runGardenAPIServer runs it as a process, or in this one; then failed tells when it ends.
func (e *Environment) runGardenAPIServer(arguments []string, failed chan error) (err error) {
	if e.options.OwnProcesses {
		e.GardenAPIServer, err = e.startRole(roleGardenAPIServer, arguments)
		return err
	}
	options, err := gardenAPIServerOptions(arguments)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.Background())
	go func() { failed <- options.Run(serving) }()
	// It ends in order when no watch is left, so after the kube-apiserver, whose clients have most of them.
	const afterFolderAndEtcd = 2
	e.stops = slices.Insert(e.stops, afterFolderAndEtcd, func() {
		stop()
		<-failed
	})
	return nil
}

// waitRegistered waits until the aggregation layer reaches every API of garden-apiserver.
func (e *Environment) waitRegistered(ctx context.Context, failed chan error) error {
	missing := "its APIServices"
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-failed:
			failed <- err
			return false, fmt.Errorf("it ended: %w", err)
		default:
		}
		services := &apiregistrationv1.APIServiceList{}
		if err := e.Client.List(ctx, services); err != nil {
			return false, nil //nolint:nilerr // until the deadline
		}
		for _, service := range services.Items {
			if !isAvailable(service) {
				missing = service.Name
				return false, nil
			}
		}
		return len(services.Items) > 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be available: %w%s", missing, err, e.GardenAPIServer.tail())
	}
	// The proxy in front learns of the availability a little later.
	return registration.WaitUntilServed(ctx, e.Config)
}

func isAvailable(service apiregistrationv1.APIService) bool {
	for _, condition := range service.Status.Conditions {
		if condition.Type == apiregistrationv1.Available {
			return condition.Status == apiregistrationv1.ConditionTrue
		}
	}
	return false
}

// Kubeconfig writes a kubeconfig of a user into the environment's folder and returns its path.
func (e *Environment) Kubeconfig(user string, groups ...string) (string, error) {
	return e.kubeconfigFor(e.Config.Host, user, groups...)
}

func (e *Environment) kubeconfigFor(server, user string, groups ...string) (string, error) {
	config, err := e.ConfigFor(server, user, groups...)
	if err != nil {
		return "", err
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["garden"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos["user"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
	}
	kubeconfig.Contexts["garden"] = &clientcmdapi.Context{Cluster: "garden", AuthInfo: "user"}
	kubeconfig.CurrentContext = "garden"
	path := filepath.Join(e.folder, strings.NewReplacer(":", "-", "/", "-").Replace(user)+".kubeconfig")
	return path, clientcmd.WriteToFile(*kubeconfig, path)
}

// waitReady waits until kube-apiserver answers a path with 200.
func (e *Environment) waitReady(ctx context.Context, path string) error {
	return e.waitAnswer(ctx, e.Config.Host+path)
}

// waitAnswer waits until a server answers with 200.
func (e *Environment) waitAnswer(ctx context.Context, address string) error {
	httpClient, err := rest.HTTPClientFor(rest.CopyConfig(e.Config))
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		response, err := httpClient.Get(address)
		if err != nil {
			return false, nil //nolint:nilerr // until the deadline
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
}

// freeURL returns a URL of the loopback address with a port that nobody listens on.
func freeURL(scheme string) (*url.URL, error) {
	port, err := ports.Take()
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: scheme, Host: fmt.Sprintf("127.0.0.1:%d", port)}, nil
}

// tail returns the last lines of a file.
func tail(path string) string {
	const lines = 20
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(string(content), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
