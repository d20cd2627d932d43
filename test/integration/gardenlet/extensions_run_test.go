package gardenlet

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trellis-garden/trellis/extensions/networking-flannel/pkg/network"
	"github.com/trellis-garden/trellis/extensions/os-debian/pkg/operatingsystemconfig"
	"github.com/trellis-garden/trellis/extensions/pkg/command"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/backup"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/bastion"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/controlplane"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/dnsrecord"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/infrastructure"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/worker"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/credentials"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	gardenletextension "github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extensionrights"
	"github.com/trellis-garden/trellis/pkg/imagevector"
	"github.com/trellis-garden/trellis/pkg/managers"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

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
	case *extensionsv1alpha1.Bastion:
		waitGone(t, seed, typed)
	case *extensionsv1alpha1.DNSRecord:
		waitGone(t, seed, typed)
	}
}

func waitGone[T gardenletextension.Object](t *testing.T, seed client.WithWatch, object T) {
	t.Helper()
	if err := gardenletextension.WaitGone(t.Context(), seed, object,
		gardenletextension.Timing{Severe: environment.Patience, Timeout: environment.Patience}); err != nil {
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
		func() error { return bastion.Add(mgr, source) },
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
