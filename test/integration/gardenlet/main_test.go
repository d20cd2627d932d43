// Package gardenlet tests gardenlet and resource-manager against a real garden whose API server is the seed as well.
// What needs machines and pods is played by the test: workloads become ready at once, extensions succeed, namespaces
// vanish.
package gardenlet

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/controllermanager"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
	"github.com/trellis-garden/trellis/pkg/gardenlet"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/helm"
	"github.com/trellis-garden/trellis/pkg/managers"
	"github.com/trellis-garden/trellis/pkg/resourcemanager"
	"github.com/trellis-garden/trellis/pkg/scheduler"
	"github.com/trellis-garden/trellis/pkg/version"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

var (
	env *environment.Environment
	// c speaks all kinds of garden and seed.
	c client.Client
	// shootCluster is how the shoot that becomes a seed is reached.
	shootCluster atomic.Pointer[rest.Config]
)

func TestMain(m *testing.M) {
	flag.Parse()
	log := logr.Discard()
	if testing.Verbose() {
		log = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(os.Stderr)))
	}
	ctrl.SetLogger(log)
	version.Version = "v0.0.0-test"
	environment.MainWith(m, &env, environment.Options{TokenIssuer: "https://issuer.example"})
}

// scheme knows all kinds of garden and seed.
func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, gardencorev1beta1.AddToScheme, securityv1alpha1.AddToScheme,
		extensionsv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// start runs a process until the test ends, or stop is called.
func start(t *testing.T, name string, run func(ctx context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		err := run(ctx)
		if ctx.Err() == nil {
			t.Errorf("%s ended: %v", name, err)
		}
		close(done)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}

// startGarden runs the garden's controllers.
func startGarden(t *testing.T) {
	start(t, "controller-manager", func(ctx context.Context) error {
		return controllermanager.Run(ctx, env.Config,
			controllermanager.Options{HealthAddress: "0", MetricsAddress: "0"})
	})
	start(t, "scheduler", func(ctx context.Context) error {
		return scheduler.Run(ctx, env.Config, scheduler.Options{HealthAddress: "0", MetricsAddress: "0"})
	})
}

// startGardenlet runs a gardenlet, which works while no other one does.
func startGardenlet(t *testing.T) (stop func()) {
	return start(t, "gardenlet", func(ctx context.Context) error {
		return gardenlet.Run(ctx, gardenlet.Options{
			Config: configuration(t), Seed: env.Config, HealthAddress: "0", MetricsAddress: "0",
			SkipNameValidation: true, LeaderElection: true,
			ShootConfig: func(context.Context, client.Reader, string) (*rest.Config, error) {
				return shootCluster.Load(), nil
			},
			AskEtcd: askEtcd,
		})
	})
}

// askEtcd plays an etcd-steward, which has read what its Secret has.
func askEtcd(ctx context.Context, seed client.Reader, pod client.ObjectKey) (*status.Status, error) {
	own := &corev1.Secret{}
	key := client.ObjectKey{Namespace: pod.Namespace, Name: strings.TrimSuffix(pod.Name, "-0") + "-certificates"}
	err := seed.Get(ctx, key, own)
	return &status.Status{Phase: status.Serving, Certificates: &status.Certificates{
		Checksum: status.CertificatesChecksum(own.Data["bundle.crt"], own.Data["tls.crt"]),
	}}, err
}

// startSeed runs what a seed runs besides gardenlet.
func startSeed(t *testing.T) {
	eventually(t, func() error {
		return c.List(context.Background(), &resourcesv1alpha1.ManagedResourceList{})
	})
	start(t, "resource-manager", func(ctx context.Context) error {
		return resourcemanager.Run(ctx, env.Config,
			resourcemanager.Options{
				ClusterID: "seed", SyncPeriod: time.Minute, Concurrency: 5, HealthAddress: "0", MetricsAddress: "0",
			})
	})
	start(t, "extensions", func(ctx context.Context) error { return runExtensions(ctx, t) })
}

// configuration is gardenlet's.
func configuration(t *testing.T) *config.Configuration {
	t.Helper()
	kubeconfig, err := env.Kubeconfig(gardencorev1beta1.SeedUserNamePrefix+"local", gardencorev1beta1.SeedsGroup)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := config.Parse(fmt.Appendf(nil, `
apiVersion: gardenlet.config.gardener.cloud/v1alpha1
kind: GardenletConfiguration
gardenClientConnection: {kubeconfig: %s}
gateway: {address: 172.18.0.2}
controllers:
  shootCare: {syncPeriod: 1s}
  seed: {conditionsPeriod: 1s}
  managedSeed: {waitSyncPeriod: 200ms}
  tokenRequestorWorkloadIdentity: {syncPeriod: 200ms}
seedConfig:
  metadata: {name: local}
  spec:
    provider: {type: local, region: local, zones: [a]}
    networks:
      nodes: 172.18.0.0/24
      pods: 10.1.0.0/16
      services: 10.2.0.0/16
      shootDefaults: {pods: 10.3.0.0/16, services: 10.4.0.0/16}
    ingress: {domain: ingress.example, controller: {kind: nginx}}
    dns:
      internal: {type: local, domain: internal.local.example, credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: dns}}
      defaults:
      - {type: local, domain: local.example, credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: dns}}
`, kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// eventually waits until a check finds nothing wrong.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, environment.Patience, true,
		func(context.Context) (bool, error) {
			last = check()
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("after %s: %v", environment.Patience, last)
	}
}

// readable is a Secret of the operators that the seed of this package may read.
func readable(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "garden", Name: name, Labels: map[string]string{gardencorev1beta1.LabelSeedReadableBy: "local"},
	}
}

// create creates objects.
func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Create(context.Background(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// get reads an object.
func get(object client.Object) error {
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
		return fmt.Errorf("get %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// actuator succeeds in everything.
type actuator[T extensionsv1alpha1.Object] struct{ report func(T) }

// Reconcile implements extension.Actuator.
func (a actuator[T]) Reconcile(_ context.Context, _ logr.Logger, object T, _ *cluster.Cluster) error {
	if a.report != nil {
		a.report(object)
	}
	return nil
}

// Delete implements extension.Actuator.
func (a actuator[T]) Delete(context.Context, logr.Logger, T, *cluster.Cluster) error { return nil }

// addExtension adds a controller for a kind.
func addExtension[T extensionsv1alpha1.Object](mgr manager.Manager, kind, extensionType string, report func(T)) error {
	return extension.Add(mgr, extension.Options[T]{
		Kind: kind, Type: extensionType, Actuator: actuator[T]{report: report},
	})
}

// runExtensions runs controllers for all kinds.
func runExtensions(ctx context.Context, t *testing.T) error {
	mgr, err := manager.New(env.Config, managers.Patient(manager.Options{
		Scheme: scheme(t), Metrics: metricsserver.Options{BindAddress: "0"},
	}))
	if err != nil {
		return err
	}
	for _, add := range []func() error{
		func() error {
			return addExtension(mgr, extensionsv1alpha1.InfrastructureResource, "local",
				func(i *extensionsv1alpha1.Infrastructure) {
					i.Status.NodesCIDR = new("10.180.9.0/24")
					i.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"network":"n1"}`)}
				})
		},
		func() error { return addExtension[*extensionsv1alpha1.ControlPlane](mgr, "ControlPlane", "local", nil) },
		func() error { return addExtension(mgr, extensionsv1alpha1.WorkerResource, "local", reportMachines) },
		func() error { return addExtension[*extensionsv1alpha1.DNSRecord](mgr, "DNSRecord", "local", nil) },
		func() error {
			return addExtension(mgr, extensionsv1alpha1.BackupBucketResource, "local",
				func(b *extensionsv1alpha1.BackupBucket) {
					b.Status.GeneratedSecretRef = &b.Spec.SecretRef
				})
		},
		func() error { return addExtension[*extensionsv1alpha1.BackupEntry](mgr, "BackupEntry", "local", nil) },
		func() error { return addExtension[*extensionsv1alpha1.Network](mgr, "Network", "flannel", nil) },
		func() error { return addExtension[*extensionsv1alpha1.Extension](mgr, "Extension", "federation", nil) },
		func() error {
			return addExtension(mgr, extensionsv1alpha1.OperatingSystemConfigResource, "debian",
				func(o *extensionsv1alpha1.OperatingSystemConfig) {
					o.Status.CloudConfig = &extensionsv1alpha1.CloudConfig{
						SecretRef: corev1.SecretReference{Namespace: o.Namespace, Name: "osc-" + o.Name},
					}
				})
		},
	} {
		if err := add(); err != nil {
			return err
		}
	}
	return mgr.Start(ctx)
}

// reportMachines tells of one MachineDeployment per pool.
func reportMachines(w *extensionsv1alpha1.Worker) {
	w.Status.MachineDeployments = nil
	for _, pool := range w.Spec.Pools {
		w.Status.MachineDeployments = append(w.Status.MachineDeployments, extensionsv1alpha1.MachineDeployment{
			Name: pool.Name + "-z1", Minimum: pool.Minimum, Maximum: pool.Maximum,
		})
	}
}

// playCluster makes workloads ready and lets namespaces go, as kube-controller-manager and kubelets would.
func playCluster(t *testing.T) {
	start(t, "cluster", func(ctx context.Context) error {
		return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			makeReady(ctx)
			issueTokens(ctx)
			releaseNamespaces(ctx)
			return false, nil
		})
	})
}

// makeReady writes the status of all workloads that have another one.
func makeReady(ctx context.Context) {
	deployments, statefulSets := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}
	if c.List(ctx, deployments) != nil || c.List(ctx, statefulSets) != nil {
		return
	}
	for _, d := range deployments.Items {
		n := ptr.Deref(d.Spec.Replicas, 1)
		ready := appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		}
		if !apiequality.Semantic.DeepEqual(d.Status, ready) {
			d.Status = ready
			_ = c.Status().Update(ctx, &d)
		}
	}
	for _, s := range statefulSets.Items {
		n := ptr.Deref(s.Spec.Replicas, 1)
		ready := appsv1.StatefulSetStatus{
			ObservedGeneration: s.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n,
		}
		if !apiequality.Semantic.DeepEqual(s.Status, ready) {
			s.Status = ready
			_ = c.Status().Update(ctx, &s)
		}
	}
}

// releaseNamespaces empties namespaces that are being deleted and lets them go.
func releaseNamespaces(ctx context.Context) {
	namespaces := &corev1.NamespaceList{}
	if c.List(ctx, namespaces) != nil {
		return
	}
	for _, namespace := range namespaces.Items {
		if namespace.DeletionTimestamp == nil || leftovers(ctx, namespace.Name) > 0 {
			continue
		}
		for _, object := range []client.Object{
			&corev1.Secret{}, &corev1.ConfigMap{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &corev1.Service{},
		} {
			_ = c.DeleteAllOf(ctx, object, client.InNamespace(namespace.Name))
		}
		namespace.Spec.Finalizers = nil
		_ = c.SubResource("finalize").Update(ctx, &namespace)
	}
}

// leftovers counts objects with finalizers of extensions.
func leftovers(ctx context.Context, namespace string) int {
	count := 0
	for _, list := range []client.ObjectList{
		&extensionsv1alpha1.InfrastructureList{}, &extensionsv1alpha1.ControlPlaneList{},
		&extensionsv1alpha1.WorkerList{}, &extensionsv1alpha1.NetworkList{},
		&extensionsv1alpha1.DNSRecordList{}, &extensionsv1alpha1.ExtensionList{},
		&extensionsv1alpha1.OperatingSystemConfigList{}, &resourcesv1alpha1.ManagedResourceList{},
	} {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return 1
		}
		count += meta.LenList(list)
	}
	return count
}

// registerExtensions registers all kinds, with the chart of a real extension as what is installed.
func registerExtensions(t *testing.T) {
	t.Helper()
	archive, err := helm.Pack(os.DirFS(filepath.Join("..", "..", "..", "extensions", "os-debian", "charts")),
		"os-debian")
	if err != nil {
		t.Fatal(err)
	}
	resources := []gardencorev1beta1.ControllerResource{
		{Kind: "Extension", Type: "federation", WorkerlessSupported: new(true)}, {Kind: "Network", Type: "flannel"},
		{Kind: "OperatingSystemConfig", Type: "debian"},
	}
	for _, kind := range []string{
		"Infrastructure", "ControlPlane", "Worker", "DNSRecord", "BackupBucket", "BackupEntry",
	} {
		resources = append(resources, gardencorev1beta1.ControllerResource{Kind: kind, Type: "local"})
	}
	create(t,
		&gardencorev1beta1.ControllerDeployment{
			ObjectMeta: metav1.ObjectMeta{Name: "os-debian"}, Type: "helm",
			ProviderConfig: runtime.RawExtension{
				Raw: fmt.Appendf(nil, `{"chart":%q,"values":{"image":"registry.example/os-debian:v1"}}`,
					encode(archive)),
			},
		},
		&gardencorev1beta1.ControllerRegistration{
			ObjectMeta: metav1.ObjectMeta{Name: "os-debian"},
			Spec: gardencorev1beta1.ControllerRegistrationSpec{
				Resources: resources,
				Deployment: &gardencorev1beta1.ControllerRegistrationDeployment{
					DeploymentRefs: []gardencorev1beta1.DeploymentRef{{Name: "os-debian"}},
				},
			},
		},
	)
}
