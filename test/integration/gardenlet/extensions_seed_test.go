package gardenlet

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/charts"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/bastionaccess"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extensionrights"
	"github.com/trellis-garden/trellis/pkg/helm"
	"github.com/trellis-garden/trellis/pkg/images"
)

// seedWithExtensions installs what gardenlet installs in a seed, and our extensions as gardenlet does.
func seedWithExtensions(t *testing.T) client.WithWatch {
	t.Helper()
	s := scheme(t)
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, machinev1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	seed, err := client.NewWithWatch(env.Config, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := charts.FS.ReadDir("crds/seed")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		readChart(t, "crds/seed/"+entry.Name(), 0, definition)
		ensure(t, seed, definition)
	}
	for _, list := range []client.ObjectList{
		&extensionsv1alpha1.WorkerList{}, &machinev1alpha1.MachineList{}, &resourcesv1alpha1.ManagedResourceList{},
	} {
		eventually(t, func() error { return seed.List(context.Background(), list) })
	}
	for _, name := range []string{"garden", "local-cloud", "extension-attacked"} {
		ensure(t, seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	installer, err := helm.NewClient(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range images.Extensions {
		installExtension(t, installer, e)
	}
	return seed
}

// installExtension installs a chart as gardenlet does, and removes it at the end of the test.
func installExtension(t *testing.T, installer *helm.Client, e images.Extension) {
	t.Helper()
	root, name := filepath.Join("..", "..", "..", e.Dir), e.Name
	text, err := os.ReadFile(filepath.Join(root, "example", "controller-registration.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	registration := &gardencorev1beta1.ControllerRegistration{}
	if err := yaml.Unmarshal([]byte(strings.Split(string(text), "\n---\n")[1]), registration); err != nil {
		t.Fatal(err)
	}
	chart, err := helm.LoadFS(os.DirFS(filepath.Join(root, "charts")), name)
	if err != nil {
		t.Fatal(err)
	}
	release := helm.Release{
		Namespace: extensionrights.ExtensionNamespace(name), Name: name, Chart: chart,
		Change: extensionrights.Accept(name, registration.Spec.Resources),
	}
	if _, err := installer.Install(t.Context(), release); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := installer.Uninstall(context.Background(), release.Namespace, release.Name); err != nil {
			t.Error(err)
		}
	})
}

// ensure creates an object that may be there.
func ensure(t *testing.T, seed client.Client, object client.Object) {
	t.Helper()
	if err := seed.Create(context.Background(), object); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
}

// shootNamespace makes the namespace of a shoot, with its Cluster.
func shootNamespace(t *testing.T, seed client.Client, name string) {
	t.Helper()
	ensure(t, seed, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleShoot},
		},
	})
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{
			gardencorev1beta1.AnnotationGenericTokenKubeconfigSecretName: "generic",
		},
	}}
	const shoot = `{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","metadata":{"name":"s"},"spec":{"controlPlane":{"highAvailability":{"failureTolerance":{"type":"node"}}}},"status":{"advertisedAddresses":[{"name":"internal","url":"https://api"}]}}`
	cluster.Spec.Shoot.Raw = []byte(shoot)
	cluster.Spec.CloudProfile.Raw = []byte(`{"apiVersion":"core.gardener.cloud/v1beta1","kind":"CloudProfile"}`)
	cluster.Spec.Seed = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Seed"}`)}
	ensure(t, seed, cluster)
	t.Cleanup(func() { _ = seed.Delete(context.Background(), cluster) })
}

// objectsOfShoots are what gardenlet writes into the namespaces of shoots.
func objectsOfShoots() []extension.Object {
	meta := metav1.ObjectMeta{Namespace: attackedShoot, Name: "s"}
	local, credentials := extensionsv1alpha1.DefaultSpec{Type: "local"},
		corev1.SecretReference{Namespace: attackedShoot, Name: "cloudprovider"}
	return []extension.Object{
		&extensionsv1alpha1.Infrastructure{
			ObjectMeta: meta, Spec: extensionsv1alpha1.InfrastructureSpec{
				DefaultSpec: local, Region: "r", SecretRef: credentials,
			},
		},
		&extensionsv1alpha1.ControlPlane{
			ObjectMeta: meta, Spec: extensionsv1alpha1.ControlPlaneSpec{
				DefaultSpec: local, Region: "r", SecretRef: credentials,
			},
		},
		&extensionsv1alpha1.Worker{ObjectMeta: meta, Spec: extensionsv1alpha1.WorkerSpec{
			DefaultSpec: local, Region: "r", SecretRef: credentials,
			InfrastructureProviderStatus: &runtime.RawExtension{
				Raw: []byte(`{"apiVersion":"local.provider.extensions.gardener.cloud/v1alpha1","kind":"InfrastructureStatus","namespace":"` + machinesOfShoot + `"}`),
			},
			Pools: []extensionsv1alpha1.WorkerPool{{
				Name: "a", MachineType: "m", Zones: []string{"z"}, MaxSurge: intstr.FromInt32(1),
				MachineImage: extensionsv1alpha1.MachineImage{Name: "i", Version: "1"},
				UserDataSecretRef: corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: "osc-result-s"}, Key: "cloud_config",
				},
			}},
		}},
		&extensionsv1alpha1.Network{ObjectMeta: meta, Spec: extensionsv1alpha1.NetworkSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "flannel"}, PodCIDR: "10.3.0.0/16",
			ServiceCIDR: "10.4.0.0/16",
		}},
		&extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: meta, Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "debian"},
			Purpose:     extensionsv1alpha1.OperatingSystemConfigPurposeProvision,
		}},
		&extensionsv1alpha1.Bastion{ObjectMeta: meta, Spec: extensionsv1alpha1.BastionSpec{
			DefaultSpec: local,
			UserData:    bastionaccess.Access{AuthorizedKey: "ssh-ed25519 AAAA", HostKey: []byte("k")}.UserData(),
			Ingress: []extensionsv1alpha1.BastionIngressPolicy{
				{IPBlock: networkingv1.IPBlock{CIDR: "203.0.113.7/32"}},
			},
		}},
		&extensionsv1alpha1.Extension{
			ObjectMeta: meta, Spec: extensionsv1alpha1.ExtensionSpec{
				DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "federation"},
			},
		},
		&extensionsv1alpha1.DNSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: attackedFleet, Name: "s"},
			Spec: extensionsv1alpha1.DNSRecordSpec{
				DefaultSpec: local, Name: "a.b.example", RecordType: "A", Values: []string{"1.2.3.4"},
				SecretRef: corev1.SecretReference{Namespace: attackedFleet, Name: "dns"},
			}},
	}
}

// shoots plays gardenlet.
func shoots(t *testing.T, seed client.WithWatch) {
	t.Helper()
	ctx := t.Context()
	for _, name := range []string{attackedShoot, attackedFleet, foreignShoot, otherProvider} {
		shootNamespace(t, seed, name)
	}
	for _, object := range objectsOfShoots() {
		if err := extension.Deploy(ctx, seed, object, true, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bucket-attack", "entry-attack"} {
		ensure(t, seed, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}, StringData: map[string]string{"token": "t"},
		})
	}
	ensure(t, seed, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "local-cloud", Name: "local-cloud"},
		StringData: map[string]string{"token": "t"},
	})
	bucket := corev1.SecretReference{Namespace: "garden", Name: "bucket-attack"}
	if err := extensionrights.BindSecret(ctx, seed, "BackupBucket/local", bucket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = extensionrights.ReleaseSecret(context.Background(), seed, bucket) })
}

// accountOf returns a client that is the service account of an extension.
func accountOf(t *testing.T, seed client.Client, name string) client.WithWatch {
	t.Helper()
	config, err := env.ConfigFor(env.Config.Host,
		"system:serviceaccount:"+extensionrights.ExtensionNamespace(name)+":"+name,
		"system:serviceaccounts", "system:serviceaccounts:"+extensionrights.ExtensionNamespace(name),
		"system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	account, err := client.NewWithWatch(config, client.Options{Scheme: seed.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return account
}
