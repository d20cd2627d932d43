package gardenlet

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/charts"
	"github.com/trellis-garden/trellis/extensions/networking-flannel/pkg/network"
	"github.com/trellis-garden/trellis/extensions/os-debian/pkg/operatingsystemconfig"
	"github.com/trellis-garden/trellis/extensions/pkg/command"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/backup"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/controlplane"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/dnsrecord"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/infrastructure"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/worker"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/credentials"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	gardenletextension "github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extensionrights"
	"github.com/trellis-garden/trellis/pkg/helm"
	"github.com/trellis-garden/trellis/pkg/images"
	"github.com/trellis-garden/trellis/pkg/imagevector"
	"github.com/trellis-garden/trellis/pkg/managers"
)

// Namespaces of shoots: one has objects of all our extensions, one a DNS record only, one nothing, and one an
// Infrastructure of others.
const (
	attackedShoot, attackedFleet, foreignShoot, otherProvider = "shoot--attack--all", "shoot--attack--record", "shoot--attack--none", "shoot--attack--other"
	machinesOfShoot                                           = "infra-" + attackedShoot
)

// right is something that an extension does or tries in a namespace.
type right struct{ namespace, verb, group, resource, name string }

func (r right) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s.%s %s in %q", r.verb, r.resource, r.group, r.name, r.namespace))
}

// rights are those of verbs, separated by commas, on resources.
func rights(namespace, verbs, group string, resources ...string) []right {
	var all []right
	for _, resource := range resources {
		for _, verb := range strings.Split(verbs, ",") {
			all = append(all, right{namespace: namespace, verb: verb, group: group, resource: resource})
		}
	}
	return all
}

// needed is what our extensions call in the namespaces of their shoots.
func needed() map[string][]right {
	const write, machines = "get,create,patch,delete", "create,delete,deletecollection,get,list,patch,update,watch"
	join := func(lists ...[]right) []right {
		var all []right
		for _, list := range lists {
			all = append(all, list...)
		}
		return all
	}
	return map[string][]right{
		"os-debian": rights(attackedShoot, write, "", "secrets"),
		"networking-flannel": join(
			rights(attackedShoot, write, "", "secrets"),
			rights(attackedShoot, write, "resources.gardener.cloud", "managedresources")),
		"extension-federation": join(
			rights(attackedShoot, write, "", "secrets", "services"),
			rights(attackedShoot, write, "apps", "deployments"),
			rights(attackedShoot, write, "networking.k8s.io", "networkpolicies")),
		"provider-local": join(
			rights(attackedShoot, write+",list", "", "secrets"), rights(attackedShoot, write, "", "serviceaccounts"),
			rights(attackedShoot, write, "apps", "deployments"),
			rights(attackedShoot, write, "rbac.authorization.k8s.io", "roles", "rolebindings"),
			rights(attackedShoot, write, "resources.gardener.cloud", "managedresources"),
			rights(attackedShoot, machines, "machine.sapcloud.io", "machines", "machinesets", "machinedeployments",
				"machineclasses"),
			rights("", "get,list,watch", "machine.sapcloud.io", "machines", "machinesets", "machinedeployments",
				"machineclasses"),
			rights(machinesOfShoot, write, "rbac.authorization.k8s.io", "roles", "rolebindings"),
			rights(machinesOfShoot, "list,deletecollection", "", "pods"),
			rights(attackedFleet, "get", "", "secrets"),
			[]right{
				{"local-cloud", "get", "", "secrets", "local-cloud"}, {"garden", "get", "", "secrets", "bucket-attack"},
			}),
	}
}

// refused is what none of our extensions may do.
func refused(name string) []right {
	all := []right{{"garden", "get", "", "secrets", "entry-attack"}}
	elsewhere := []string{"", "garden", "kube-system", foreignShoot, otherProvider, "extension-attacked"}
	if name != "provider-local" {
		elsewhere = append(elsewhere, attackedFleet, machinesOfShoot)
	}
	for _, namespace := range elsewhere {
		all = append(all, rights(namespace, "get,list,watch,create,update,patch,delete", "", "secrets")...)
		all = append(all, rights(namespace, "create,update,patch,delete", "", "pods", "serviceaccounts", "services")...)
		all = append(all, rights(namespace, "create", "", "serviceaccounts/token", "pods/exec")...)
		all = append(all, rights(namespace, "create,update,patch,delete", "apps", "deployments")...)
		all = append(all, rights(namespace, "create,update,patch,delete", "resources.gardener.cloud",
			"managedresources")...)
		all = append(all, rights(namespace, "create,update,patch,delete", "rbac.authorization.k8s.io", "roles",
			"rolebindings")...)
		all = append(all, rights(namespace, "create,update,patch,delete", "machine.sapcloud.io", "machines")...)
	}
	all = append(all, rights("", "create,update,patch,delete", "rbac.authorization.k8s.io", "clusterroles",
		"clusterrolebindings")...)
	all = append(all, rights("", "create,update,patch,delete", "", "namespaces", "nodes")...)
	return append(all, rights("", "create,update,patch,delete", "extensions.gardener.cloud", "clusters")...)
}

// An extension that is taken over has what it needs for the objects of its kinds and types, and nothing of the seed
// beside that.
func TestAttackExtensionBeyondItsShoots(t *testing.T) {
	seed := seedWithExtensions(t)
	attackers := map[string]client.WithWatch{}
	for _, e := range images.Extensions {
		attackers[e.Name] = accountOf(t, seed, e.Name)
	}
	shoots(t, seed)
	for name, attacker := range attackers {
		t.Run(name, func(t *testing.T) {
			for _, r := range needed()[name] {
				eventually(t, func() error { return mayDo(attacker, r, true) })
			}
			for _, r := range refused(name) {
				if err := mayDo(attacker, r, false); err != nil {
					t.Error(err)
				}
			}
			takesOverTheSeed(t, attacker)
		})
	}
	t.Run("work is done with these rights", func(t *testing.T) { extensionsWork(t, seed) })
	t.Run("the last object takes the rights along", func(t *testing.T) {
		for _, name := range []string{attackedShoot, attackedFleet} {
			bindings := &rbacv1.RoleBindingList{}
			if err := seed.List(t.Context(), bindings, client.InNamespace(name),
				client.HasLabels{extensionrights.LabelRegistration}); err != nil {
				t.Fatal(err)
			}
			for _, binding := range bindings.Items {
				t.Errorf("%s is left in %s", binding.Name, name)
			}
		}
		namespace := &corev1.Namespace{}
		if err := seed.Get(t.Context(), client.ObjectKey{Name: machinesOfShoot}, namespace); err == nil &&
			namespace.DeletionTimestamp == nil {
			t.Errorf("namespace %s is left", machinesOfShoot)
		}
	})
}

// An extension may write into objects of its kinds wherever they are; what it writes gives it no rights.
func TestAttackExtensionTakesObjectsOfOthers(t *testing.T) {
	ctx, seed := t.Context(), seedWithExtensions(t)
	attacker := accountOf(t, seed, "provider-local")
	object := &extensionsv1alpha1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Namespace: otherProvider, Name: "other"}}
	shootNamespace(t, seed, otherProvider)
	if err := gardenletextension.Deploy(ctx, seed, object, false,
		func() { object.Spec.Type, object.Spec.Region = "other", "r" }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = seed.Delete(context.Background(), object) })
	stolen := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"type":"local"}}`))
	if err := attacker.Patch(ctx, object, stolen); err != nil {
		t.Fatal(err)
	}
	if err := extensionrights.Sync(ctx, seed); err != nil {
		t.Fatal(err)
	}
	if err := extensionrights.Ensure(ctx, seed, otherProvider); err != nil {
		t.Fatal(err)
	}
	for _, r := range rights(otherProvider, "get,create", "", "secrets") {
		if err := mayDo(attacker, r, false); err != nil {
			t.Error(err)
		}
	}
}

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
func objectsOfShoots() []gardenletextension.Object {
	meta := metav1.ObjectMeta{Namespace: attackedShoot, Name: "s"}
	local, credentials := extensionsv1alpha1.DefaultSpec{Type: "local"},
		corev1.SecretReference{Namespace: attackedShoot, Name: "cloudprovider"}
	return []gardenletextension.Object{
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
		if err := gardenletextension.Deploy(ctx, seed, object, true, func() {}); err != nil {
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

// mayDo tells if a right is not as wanted.
func mayDo(account client.Client, r right, wanted bool) error {
	resource, subresource, _ := strings.Cut(r.resource, "/")
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: r.namespace, Verb: r.verb, Group: r.group, Resource: resource, Subresource: subresource,
			Name: r.name,
		}},
	}
	if err := account.Create(context.Background(), review); err != nil {
		return err
	}
	if review.Status.Allowed != wanted {
		return fmt.Errorf("%s: allowed is %v, want %v (%s)", r, review.Status.Allowed, wanted, review.Status.Reason)
	}
	return nil
}

// takesOverTheSeed tries the ways to all rights.
func takesOverTheSeed(t *testing.T, attacker client.Client) {
	t.Helper()
	admin := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	for _, object := range []client.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "attack"}, RoleRef: admin},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "attack"}, RoleRef: admin},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: attackedShoot, Name: "attack"}, RoleRef: admin},
		&resourcesv1alpha1.ManagedResource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "attack"},
			Spec: resourcesv1alpha1.ManagedResourceSpec{
				Class:      new(resourcesv1alpha1.ClassSeed),
				SecretRefs: []corev1.LocalObjectReference{{Name: "bucket-attack"}},
			},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: foreignShoot, Name: "attack"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "attack"}},
	} {
		if err := attacker.Create(t.Context(), object); !apierrors.IsForbidden(err) {
			t.Errorf("creating %T in %q: %v, want it forbidden", object, object.GetNamespace(), err)
		}
	}
	for _, namespace := range []string{"garden", "extension-attacked", foreignShoot} {
		if err := attacker.List(t.Context(), &corev1.SecretList{},
			client.InNamespace(namespace)); !apierrors.IsForbidden(err) {
			t.Errorf("listing Secrets in %s: %v, want it forbidden", namespace, err)
		}
	}
	annotations := client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+extensionsv1alpha1.AnnotationRoleResources+`":"Infrastructure/other"}}}`))
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: otherProvider}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "extensions.trellis.garden:os-debian:shoot"}},
	} {
		if err := attacker.Patch(t.Context(), object, annotations); !apierrors.IsForbidden(err) {
			t.Errorf("annotating %T: %v, want it forbidden", object, err)
		}
	}
}

// extensionsWork runs our extensions with their accounts, but that for fleets, until their objects are made and gone.
func extensionsWork(t *testing.T, seed client.WithWatch) {
	ctx := t.Context()
	for _, name := range []string{"osc-result-s", "cloudprovider"} {
		ensure(t, seed, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: attackedShoot, Name: name},
			StringData: map[string]string{"cloud_config": "c"},
		})
	}
	cloud := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(cloud.Close)
	start(t, "extensions of ours", func(ctx context.Context) error { return runOurs(ctx, t, cloud.URL) })
	start(t, "what others do", func(ctx context.Context) error { return playMachines(ctx, seed) })

	for _, object := range objectsOfShoots() {
		switch object.(type) {
		case *extensionsv1alpha1.Extension:
		case *extensionsv1alpha1.Infrastructure:
			// There is no Terraform. What is done before that is done in both namespaces.
			eventually(t, func() error {
				return seed.Get(ctx, client.ObjectKey{Namespace: machinesOfShoot, Name: "machine-controller-manager"},
					&rbacv1.RoleBinding{})
			})
			eventually(t, func() error {
				return seed.Get(ctx, client.ObjectKey{Namespace: attackedShoot, Name: "s.infra.tf-config"},
					&corev1.Secret{})
			})
		default:
			eventually(t, func() error {
				if err := seed.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
					return err
				}
				if err := gardenletextension.Check(object); err != nil {
					return fmt.Errorf("%T: %w", object, err)
				}
				return nil
			})
		}
	}
	for _, object := range []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: attackedShoot, Name: "machine-controller-manager"}},
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: attackedShoot, Name: "machine-controller-manager"},
		},
		&resourcesv1alpha1.ManagedResource{
			ObjectMeta: metav1.ObjectMeta{Namespace: attackedShoot, Name: "extension-networking-flannel"},
		},
	} {
		if err := seed.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			t.Error(err)
		}
	}
	for _, object := range objectsOfShoots() {
		removeObject(t, seed, object)
	}
}

// removeObject plays gardenlet's deletion of an object.
func removeObject(t *testing.T, seed client.WithWatch, object gardenletextension.Object) {
	t.Helper()
	if err := gardenletextension.Destroy(t.Context(), seed, object); err != nil {
		t.Fatal(err)
	}
	switch typed := object.(type) {
	case *extensionsv1alpha1.Infrastructure:
		// Terraform is missing: take the finalizer away once the machines are gone.
		typed.Finalizers = nil
		if err := seed.Patch(t.Context(), typed,
			client.RawPatch(types.MergePatchType,
				[]byte(`{"metadata":{"finalizers":null}}`))); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		waitGone(t, seed, typed)
	case *extensionsv1alpha1.ControlPlane:
		waitGone(t, seed, typed)
	case *extensionsv1alpha1.Worker:
		waitGone(t, seed, typed)
	case *extensionsv1alpha1.Network:
		waitGone(t, seed, typed)
	case *extensionsv1alpha1.OperatingSystemConfig:
		waitGone(t, seed, typed)
	case *extensionsv1alpha1.Extension:
		waitGone(t, seed, typed)
	case *extensionsv1alpha1.DNSRecord:
		waitGone(t, seed, typed)
	}
}

func waitGone[T gardenletextension.Object](t *testing.T, seed client.WithWatch, object T) {
	t.Helper()
	if err := gardenletextension.WaitGone(t.Context(), seed, object,
		gardenletextension.Timing{Severe: patience, Timeout: patience}); err != nil {
		t.Errorf("%T: %v", object, err)
	}
}

// runOurs runs controllers of our extensions, each with its account.
func runOurs(ctx context.Context, t *testing.T, cloud string) error {
	vector, err := imagevector.Load()
	if err != nil {
		return err
	}
	setups := map[string]func(manager.Manager) error{
		"os-debian": func(mgr manager.Manager) error {
			return extension.Add(mgr, extension.Options[*extensionsv1alpha1.OperatingSystemConfig]{
				Kind: "OperatingSystemConfig", Type: operatingsystemconfig.Type,
				Actuator: &operatingsystemconfig.Actuator{Client: mgr.GetClient()},
			})
		},
		"networking-flannel": func(mgr manager.Manager) error {
			return extension.Add(mgr, extension.Options[*extensionsv1alpha1.Network]{
				Kind: "Network", Type: network.Type,
				Actuator: &network.Actuator{Client: mgr.GetClient(), Images: vector},
			})
		},
		"provider-local": func(mgr manager.Manager) error { return addProvider(mgr, cloud) },
	}
	failed := make(chan error, len(setups))
	for name, setup := range setups {
		go func() { failed <- runAs(ctx, t, name, setup) }()
	}
	for range setups {
		if err := <-failed; err != nil {
			return err
		}
	}
	return nil
}

// addProvider adds the controllers of provider-local.
func addProvider(mgr manager.Manager, cloud string) error {
	source := credentials.Source{
		Reader: mgr.GetAPIReader(), Endpoint: cloud,
		Secret: client.ObjectKey{Namespace: "local-cloud", Name: "local-cloud"},
	}
	for _, add := range []func() error{
		func() error { return infrastructure.Add(mgr, infrastructure.Options{Credentials: source}) },
		func() error { return controlplane.Add(mgr) },
		func() error { return dnsrecord.Add(mgr, source, "example") },
		func() error { return backup.Add(mgr, source, "extension-provider-local") },
		func() error {
			return worker.Add(mgr, worker.Options{
				MachineControllerManager: "mcm", Image: "driver",
				MachineImage: func(string, string) (string, error) { return "machine", nil },
			})
		},
	} {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

// runAs runs a manager with an extension's account, and the caches that extensions have.
func runAs(ctx context.Context, t *testing.T, name string, setup func(manager.Manager) error) error {
	config, err := env.ConfigFor(env.Config.Host,
		"system:serviceaccount:"+extensionrights.ExtensionNamespace(name)+":"+name,
		"system:serviceaccounts", "system:authenticated")
	if err != nil {
		return err
	}
	s, err := command.Scheme(machinev1alpha1.AddToScheme)
	if err != nil {
		return err
	}
	mgr, err := manager.New(config, managers.Patient(manager.Options{
		Scheme: s, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: command.Uncached()}},
	}))
	if err != nil {
		return err
	}
	if err := setup(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// playMachines plays resource-manager and machine-controller-manager: tokens are there at once, and nothing is left to
// do for machines.
func playMachines(ctx context.Context, seed client.Client) error {
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: attackedShoot, Name: "shoot-access-machine-controller-manager"},
		}
		_ = seed.Patch(ctx, secret, client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"token":"t"}}`)))
		deployments := &machinev1alpha1.MachineDeploymentList{}
		if err := seed.List(ctx, deployments, client.InNamespace(attackedShoot)); err != nil {
			return false, nil
		}
		for _, deployment := range deployments.Items {
			deployment.Status.ObservedGeneration = deployment.Generation
			_ = seed.Status().Update(ctx, &deployment)
		}
		return false, nil
	})
}
