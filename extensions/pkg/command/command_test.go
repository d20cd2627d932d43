package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

// What extensions work with is known, and so is every kind that they read without a cache.
func TestScheme(t *testing.T) {
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range append(Uncached(), &extensionsv1alpha1.Worker{}, &extensionsv1alpha1.Cluster{},
		&resourcesv1alpha1.ManagedResource{}) {
		if _, err := apiutil.GVKForObject(object, scheme); err != nil {
			t.Errorf("%T: %v", object, err)
		}
	}
	failing := func(*runtime.Scheme) error { return os.ErrInvalid }
	if _, err := Scheme(failing); err == nil || !strings.Contains(err.Error(), "building the scheme") {
		t.Errorf("got %v", err)
	}
}

// Extensions may read Secrets in namespaces of their shoots only: a cache would ask for all of the seed's, and be
// refused.
func TestSecretsAreNotCached(t *testing.T) {
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	options := NewOptions().managerOptions("x", scheme, logr.Discard())
	uncached := false
	for _, object := range options.Client.Cache.DisableFor {
		_, isSecret := object.(*corev1.Secret)
		uncached = uncached || isSecret
	}
	if !uncached || options.LeaderElection || options.Metrics.BindAddress != "0" ||
		options.HealthProbeBindAddress != ":8081" {
		t.Errorf("got %+v", options)
	}
}

// A manager within another process takes no port from it.
func TestInside(t *testing.T) {
	options := Inside(runtime.NewScheme(), logr.Discard())
	if options.Metrics.BindAddress != "0" || options.HealthProbeBindAddress != "0" || options.LeaderElection ||
		options.Controller.CacheSyncTimeout == 0 {
		t.Errorf("got %+v", options)
	}
}

func TestFlags(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "extension-example")
	options := NewOptions()
	command := &cobra.Command{Use: "x"}
	options.AddFlags(command.Flags())
	if options.Namespace != "extension-example" {
		t.Errorf("got namespace %q", options.Namespace)
	}
	arguments := []string{
		"--leader-election", "--namespace=other", "--metrics-bind-address=:9", "--health-bind-address=0", "--heartbeat",
		"-v=3",
	}
	if err := command.ParseFlags(arguments); err != nil {
		t.Fatal(err)
	}
	want := Options{
		Namespace: "other", LeaderElection: true, MetricsAddress: ":9", HealthAddress: "0", Heartbeat: true,
		Verbosity: 3,
	}
	if *options != want {
		t.Errorf("got %+v", *options)
	}
	if command.Flags().Lookup("kubeconfig") == nil {
		t.Error("the seed cannot be named")
	}
}

// gardenlet takes an extension for dead whose Lease is not renewed.
func TestHeartbeat(t *testing.T) {
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	h := &heartbeat{client: c, namespace: "extension-example", holder: "example", log: logr.Discard()}
	var renewed []int64
	for range 2 {
		if err := h.renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		lease := &coordinationv1.Lease{}
		if err := c.Get(t.Context(), client.ObjectKey{
			Namespace: "extension-example", Name: extensionsv1alpha1.HeartbeatLeaseName,
		}, lease); err != nil {
			t.Fatal(err)
		}
		if *lease.Spec.HolderIdentity != "example" || *lease.Spec.LeaseDurationSeconds != 30 {
			t.Errorf("got %+v", lease.Spec)
		}
		renewed = append(renewed, lease.Spec.RenewTime.UnixMicro())
	}
	if renewed[1] < renewed[0] || renewed[0] == 0 {
		t.Errorf("renewed at %v", renewed)
	}
}

func TestGardenConfig(t *testing.T) {
	t.Setenv(EnvGardenKubeconfig, "")
	if config, err := GardenConfig(); err != nil || config != nil {
		t.Errorf("an extension without access to the garden: %v, %v", config, err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	t.Setenv(EnvGardenKubeconfig, path)
	if _, err := GardenConfig(); err == nil || !strings.Contains(err.Error(), path+" (GARDEN_KUBECONFIG)") {
		t.Errorf("got %v", err)
	}
	kubeconfig :=
		"apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\nclusters: " +
			"[{name: c, cluster: {server: 'https://garden.example'}}]\n"
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	if config, err := GardenConfig(); err != nil || config.Host != "https://garden.example" {
		t.Errorf("got %v, %v", config, err)
	}
}
