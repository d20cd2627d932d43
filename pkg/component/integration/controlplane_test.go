// Package integration runs the control plane that the components describe with the real programs of Kubernetes, as
// processes of the test: what the Deployments would mount is written to files, and their arguments are used as they are
// but for paths, ports and names. It needs the "kubernetes" binary that the landscape builds (KUBERNETES_BINARY, or
// .cache/bin/kubernetes-v*).
package integration

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trellis-garden/trellis/pkg/apis"
	"github.com/trellis-garden/trellis/pkg/component"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-garden/trellis/pkg/component/kubescheduler"
	"github.com/trellis-garden/trellis/pkg/component/metricsserver"
	"github.com/trellis-garden/trellis/pkg/etcd"
	"github.com/trellis-garden/trellis/pkg/secrets"
	"github.com/trellis-garden/trellis/test/ports"
	"github.com/trellis-garden/trellis/test/precedence"

	"go.etcd.io/etcd/client/pkg/v3/transport"
)

const (
	namespace = "shoot--demo--member1"
	version   = "1.36.3"
	timeout   = 4 * time.Minute
)

func TestMain(m *testing.M) {
	precedence.Take()
	os.Exit(m.Run())
}

func TestShootControlPlane(t *testing.T) {
	cp := newControlPlane(t)
	cp.deploy(t, etcdcomponent.New(cp.seed, namespace, cp.secrets,
		etcdcomponent.Values{Role: etcdcomponent.Main, Image: "etcd", Replicas: 1}))
	cp.deploy(t, etcdcomponent.New(cp.seed, namespace, cp.secrets,
		etcdcomponent.Values{Role: etcdcomponent.Events, Image: "etcd", Replicas: 1}))
	cp.startEtcd(t, etcdcomponent.Main)
	cp.startEtcd(t, etcdcomponent.Events)

	cp.deploy(t, kubeapiserver.New(cp.seed, namespace, cp.secrets, kubeapiserver.Values{
		Version: version, Image: "kube-apiserver", Replicas: 1, ServiceNetworks: []string{"10.4.0.0/16"},
		AdvertiseAddress: "240.0.0.1", ExternalHostnames: []string{"api.member1.demo.local.trellis.garden"},
		VPN: &kubeapiserver.VPNValues{}, AggregatorRouting: true,
	}))
	cp.start(t, kubeapiserver.Name)
	admin := cp.adminClient(t)
	cp.eventually(t, "kube-apiserver is ready", func(ctx context.Context) error {
		_, err := admin.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	})

	cp.deploy(t, kubecontrollermanager.New(cp.seed, namespace, cp.secrets, kubecontrollermanager.Values{
		Version: version, Image: "kcm", Replicas: 1, ClusterName: namespace, PodNetworks: []string{"10.3.0.0/16"},
		ServiceNetworks: []string{"10.4.0.0/16"},
	}))
	cp.deploy(t, kubescheduler.New(cp.seed, namespace, cp.secrets,
		kubescheduler.Values{Version: version, Image: "scheduler", Replicas: 1}))
	cp.start(t, kubecontrollermanager.Name)
	cp.start(t, kubescheduler.Name)

	t.Run("controllers work with their certificates", func(t *testing.T) {
		cp.eventually(t, "the default service account is there", func(ctx context.Context) error {
			_, err := admin.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
			return err
		})
		cp.eventually(t, "kubernetes points at the advertise address", func(ctx context.Context) error {
			slicesList, err := admin.DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, slice := range slicesList.Items {
				if len(slice.Endpoints) == 1 && slice.Endpoints[0].Addresses[0] == "240.0.0.1" {
					return nil
				}
			}
			return fmt.Errorf("endpoint slices are %v", slicesList.Items)
		})
	})
	t.Run("the issuer's keys are where clients reach them", func(t *testing.T) {
		described, err := admin.Discovery().
			RESTClient().Get().AbsPath("/.well-known/openid-configuration").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := `"jwks_uri":"https://api.member1.demo.local.trellis.garden:443/openid/v1/jwks"`
		if !strings.Contains(string(described), want) {
			t.Errorf("the issuer says of itself %s, want %s", described, want)
		}
	})
	t.Run("the scheduler sees pods", func(t *testing.T) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
		}
		if _, err := admin.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		cp.eventually(t, "the pod is judged unschedulable", func(ctx context.Context) error {
			pod, err := admin.CoreV1().Pods("default").Get(ctx, "web", metav1.GetOptions{})
			if err == nil && len(pod.Status.Conditions) == 0 {
				err = fmt.Errorf("no condition yet")
			}
			return err
		})
	})
	t.Run("events are in their own etcd, secrets are encrypted", func(t *testing.T) { cp.checkStorage(t, admin) })
	t.Run("anonymous requests reach health checks only", func(t *testing.T) {
		anonymous := rest.AnonymousClientConfig(cp.adminConfig(t))
		set, err := kubernetes.NewForConfig(anonymous)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := set.Discovery().RESTClient().Get().AbsPath("/livez").DoRaw(t.Context()); err != nil {
			t.Errorf("health check: %v", err)
		}
		if _, err := set.Discovery().RESTClient().
			Get().AbsPath("/version").DoRaw(t.Context()); !apierrors.IsUnauthorized(err) {
			t.Errorf("another path: %v", err)
		}
	})
	t.Run("an etcd grows to three members", cp.growEtcd)
	t.Run("system objects are accepted", func(t *testing.T) {
		target, err := client.New(cp.adminConfig(t), client.Options{Scheme: apis.GardenScheme()})
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range cp.systemObjects(t) {
			if err := component.Apply(t.Context(), target, object); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestWorkerlessControlPlane(t *testing.T) {
	cp := newControlPlane(t)
	for _, role := range []etcdcomponent.Role{etcdcomponent.Main, etcdcomponent.Events} {
		cp.deploy(t, etcdcomponent.New(cp.seed, namespace, cp.secrets,
			etcdcomponent.Values{Role: role, Image: "etcd", Replicas: 1}))
		cp.startEtcd(t, role)
	}
	cp.deploy(t, kubeapiserver.New(cp.seed, namespace, cp.secrets, kubeapiserver.Values{
		Version: version, Image: "kube-apiserver", Replicas: 1, ServiceNetworks: []string{"10.4.0.0/16"},
		IsWorkerless: true,
		Encryption:   kubeapiserver.EncryptionValues{Provider: kubeapiserver.AESCBC},
	}))
	cp.start(t, kubeapiserver.Name)
	admin := cp.adminClient(t)
	cp.eventually(t, "kube-apiserver is ready", func(ctx context.Context) error {
		_, err := admin.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	})
	cp.deploy(t, kubecontrollermanager.New(cp.seed, namespace, cp.secrets, kubecontrollermanager.Values{
		Version: version, Image: "kcm", Replicas: 1, ClusterName: namespace, ServiceNetworks: []string{"10.4.0.0/16"},
		IsWorkerless: true,
	}))
	cp.start(t, kubecontrollermanager.Name)
	cp.eventually(t, "the default service account is there", func(ctx context.Context) error {
		_, err := admin.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// controlPlane is a control plane whose objects are in a fake seed and whose programs are processes of the test.
type controlPlane struct {
	seed    client.Client
	secrets secrets.Manager
	dir     string
	binary  string
	// ports by the names that the programs know each other by.
	ports map[string]int
	// addresses of this machine by what stands for them in the files and arguments of pods.
	addresses map[string]string
	// outputs are what the programs have written.
	outputs map[string]*output
}

// output is what a running program writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func newControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	return newControlPlaneOf(t, secrets.Options{})
}

// newControlPlaneOf makes one in a seed with authorities of its own.
func newControlPlaneOf(t *testing.T, options secrets.Options) *controlPlane {
	t.Helper()
	binary := kubernetesBinary(t)
	seed := fake.NewClientBuilder().Build()
	manager, err := secrets.New(t.Context(), seed, namespace, options)
	if err != nil {
		t.Fatal(err)
	}
	authorities := append(kubeapiserver.Authorities(), component.CAKubelet, component.CAVPN, metricsserver.Authority)
	if err := component.GenerateCertificateAuthorities(t.Context(), manager, authorities); err != nil {
		t.Fatal(err)
	}
	cp := &controlPlane{
		seed: seed, secrets: manager, dir: t.TempDir(), binary: binary, ports: map[string]int{},
		outputs: map[string]*output{},
	}
	for _, name := range []string{
		"etcd-main-client", "etcd-events-client", kubeapiserver.Name, kubecontrollermanager.Name, kubescheduler.Name,
	} {
		cp.ports[name] = freePort(t)
	}
	return cp
}

func kubernetesBinary(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("KUBERNETES_BINARY"); path != "" {
		return path
	}
	found, err := filepath.Glob(filepath.Join("..", "..", "..", ".cache", "bin", "kubernetes-v*"))
	if err != nil || len(found) == 0 {
		t.Fatal("the kubernetes binary is not built; set KUBERNETES_BINARY or run make images")
	}
	path, err := filepath.Abs(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := ports.Take()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func (cp *controlPlane) deploy(t *testing.T, c component.Component) {
	t.Helper()
	if err := c.Deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (cp *controlPlane) eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// write puts the files of a container's projected Secrets below the test's directory and returns the mount paths' new
// places.
func (cp *controlPlane) write(t *testing.T, name string, pod corev1.PodSpec,
	container corev1.Container) map[string]string {
	t.Helper()
	places := map[string]string{}
	for _, mount := range container.VolumeMounts {
		index := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		place := filepath.Join(cp.dir, name, mount.Name)
		places[mount.MountPath] = place
		if index < 0 || pod.Volumes[index].Projected == nil {
			continue
		}
		for _, source := range pod.Volumes[index].Projected.Sources {
			secret := &corev1.Secret{}
			if err := cp.seed.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: source.Secret.Name},
				secret); err != nil {
				t.Fatal(err)
			}
			for _, item := range source.Secret.Items {
				content, found := secret.Data[item.Key]
				if !found {
					t.Fatalf("Secret %s has no key %s", secret.Name, item.Key)
				}
				writeFile(t, filepath.Join(place, item.Path), cp.relocate(string(content), places))
			}
		}
	}
	return places
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// relocate replaces names by loopback addresses and mount paths by their places.
func (cp *controlPlane) relocate(text string, places map[string]string) string {
	for name, port := range cp.ports {
		text = strings.ReplaceAll(text, fmt.Sprintf("https://%s:2379", name), fmt.Sprintf("https://localhost:%d", port))
	}
	api := fmt.Sprintf("https://localhost:%d", cp.ports[kubeapiserver.Name])
	text = strings.ReplaceAll(text, "https://"+kubeapiserver.InternalHost(namespace), api)
	text = strings.ReplaceAll(text, "server: https://kube-apiserver\n", "server: "+api+"\n")
	text = strings.ReplaceAll(text, `"server":"https://kube-apiserver"`, `"server":"`+api+`"`)
	for there, here := range cp.addresses {
		text = strings.ReplaceAll(text, there, here)
	}
	paths := slices.Sorted(maps.Keys(places))
	slices.Reverse(paths)
	for _, path := range paths {
		text = strings.ReplaceAll(text, path, places[path])
	}
	return text
}

// start runs the program of a Deployment.
func (cp *controlPlane) start(t *testing.T, name string) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	if err := cp.seed.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, deployment); err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	places := cp.write(t, name, pod, pod.Containers[0])
	arguments := []string{name}
	for _, argument := range pod.Containers[0].Args {
		if strings.HasPrefix(argument, "--secure-port=") {
			argument = "--secure-port=" + strconv.Itoa(cp.ports[name])
		}
		arguments = append(arguments, cp.relocate(argument, places))
	}
	command := exec.Command(cp.binary, append(arguments, "--bind-address=127.0.0.1")...)
	cp.outputs[name] = &output{}
	command.Stdout, command.Stderr = cp.outputs[name], cp.outputs[name]
	for _, variable := range pod.Containers[0].Env {
		command.Env = append(command.Environ(), variable.Name+"="+variable.Value)
	}
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			lines := strings.Split(cp.outputs[name].String(), "\n")
			t.Logf("%s:\n%s", name, strings.Join(lines[max(0, len(lines)-40):], "\n"))
		}
	})
}

// startEtcd runs etcd-steward in process with the options of the StatefulSet.
func (cp *controlPlane) startEtcd(t *testing.T, role etcdcomponent.Role) {
	t.Helper()
	name := etcdcomponent.Name(role)
	set := &appsv1.StatefulSet{}
	if err := cp.seed.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, set); err != nil {
		t.Fatal(err)
	}
	pod := set.Spec.Template.Spec
	places := cp.write(t, name, pod, pod.Containers[0])
	options := etcd.DefaultOptions()
	flags := newFlagSet(&options)
	var arguments []string
	for _, argument := range pod.Containers[0].Args {
		argument = strings.ReplaceAll(argument, "$(POD_NAME)", name+"-0")
		arguments = append(arguments, cp.relocate(argument, places))
	}
	if err := flags.Parse(arguments); err != nil {
		t.Fatalf("etcd-steward refuses the arguments of the StatefulSet: %v", err)
	}
	options.ListenClientURL = fmt.Sprintf("https://127.0.0.1:%d", cp.ports[etcdcomponent.ClientServiceName(role)])
	options.AdvertiseClientURL = ""
	options.ListenPeerURL = fmt.Sprintf("https://127.0.0.1:%d", freePort(t))
	options.HealthAddress = ""
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- etcd.New(options, zap.NewNop()).Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
}

func (cp *controlPlane) adminConfig(t *testing.T) *rest.Config {
	t.Helper()
	secret := &corev1.Secret{}
	if err := cp.seed.Get(t.Context(),
		client.ObjectKey{Namespace: namespace, Name: kubeapiserver.InternalKubeconfigSecret}, secret); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(cp.relocate(string(secret.Data["kubeconfig"]), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func (cp *controlPlane) adminClient(t *testing.T) kubernetes.Interface {
	t.Helper()
	set, err := kubernetes.NewForConfig(cp.adminConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func (cp *controlPlane) checkStorage(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"password": "plain-text-secret"},
	}
	if _, err := admin.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	stored := cp.read(t, etcdcomponent.Main, "/registry/secrets/default/s")
	if len(stored) == 0 || bytes.Contains(stored, []byte("plain-text-secret")) ||
		!bytes.HasPrefix(stored, []byte("k8s:enc:secretbox:")) {
		t.Errorf("the secret is stored as %q", stored)
	}
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "e"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "p"},
	}
	if _, err := admin.CoreV1().Events("default").Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(cp.read(t, etcdcomponent.Events, "/registry/events/default/e")) == 0 {
		t.Error("the event is not in etcd-events")
	}
	if len(cp.read(t, etcdcomponent.Main, "/registry/events/default/e")) != 0 {
		t.Error("the event is in etcd-main")
	}
}

func (cp *controlPlane) read(t *testing.T, role etcdcomponent.Role, key string) []byte {
	t.Helper()
	pki := filepath.Join(cp.dir, kubeapiserver.Name, "pki")
	tls, err := transport.TLSInfo{
		CertFile: filepath.Join(pki, "etcd-client/tls.crt"), KeyFile: filepath.Join(pki, "etcd-client/tls.key"),
		TrustedCAFile: filepath.Join(pki, "ca-etcd/bundle.crt"),
	}.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{fmt.Sprintf("https://localhost:%d", cp.ports[etcdcomponent.ClientServiceName(role)])},
		TLS:       tls, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	response, err := c.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(response.Kvs) == 0 {
		return nil
	}
	return response.Kvs[0].Value
}
