// Package garden tests the garden's API as its users see it: garden-apiserver behind a real kube-apiserver, with
// garden-controller-manager and garden-scheduler at work.
package garden

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/controllermanager"
	"github.com/trellis-garden/trellis/pkg/scheduler"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

var env *environment.Environment

func TestMain(m *testing.M) {
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	if testing.Verbose() {
		ctrl.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(os.Stderr))))
	}
	environment.Main(m, &env)
}

// startControllers runs garden-controller-manager and garden-scheduler until the test ends.
func startControllers(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	done := make(chan error, 2)
	manager, err := env.ConfigFor(env.Config.Host, gardencorev1beta1.GardenControllerManagerUser)
	if err != nil {
		t.Fatal(err)
	}
	assigner, err := env.ConfigFor(env.Config.Host, gardencorev1beta1.GardenSchedulerUser)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		done <- controllermanager.Run(ctx, manager, controllermanager.Options{HealthAddress: "0", MetricsAddress: "0"})
	}()
	go func() {
		done <- scheduler.Run(ctx, assigner, scheduler.Options{HealthAddress: "0", MetricsAddress: "0"})
	}()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("a controller ended with: %v", err)
			}
		}
	})
}

// eventually waits until a check finds nothing wrong.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	// The limit ends what hangs; beside other tests, 30 s were not enough for what takes one.
	const limit = 2 * time.Minute
	var last error
	err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, limit, true,
		func(context.Context) (bool, error) {
			last = check()
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("after %s: %v", limit, last)
	}
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := env.Client.Create(context.Background(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// newProject creates a project with its namespace and credentials, as far as shoots need them.
func newProject(t *testing.T, name string) (namespace string) {
	t.Helper()
	namespace = gardencorev1beta1.ProjectNamePrefix + name
	offerExtensions(t)
	create(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{
			gardencorev1beta1.ProjectName: name, gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleProject,
		}}},
		&gardencorev1beta1.Project{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: gardencorev1beta1.ProjectSpec{Namespace: &namespace},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "local"}},
	)
	create(t, &securityv1alpha1.CredentialsBinding{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "local"},
		Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "local"},
	})
	return namespace
}

// offerExtensions registers the extensions that newShoot asks for, without anything to install. Tests may register them
// once more, with something to install: these are not primary.
func offerExtensions(t *testing.T) {
	t.Helper()
	registration := &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "offered"}}
	for _, offered := range [][2]string{
		{"ControlPlane", "local"}, {"Infrastructure", "local"}, {"Worker", "local"}, {"DNSRecord", "local"},
		{"Network", "flannel"}, {"OperatingSystemConfig", "debian"}, {"Bastion", "local"},
	} {
		registration.Spec.Resources = append(registration.Spec.Resources,
			gardencorev1beta1.ControllerResource{Kind: offered[0], Type: offered[1], Primary: new(false)})
	}
	if err := client.IgnoreAlreadyExists(env.Client.Create(context.Background(), registration)); err != nil {
		t.Fatal(err)
	}
}

func newProfile(name string) *gardencorev1beta1.CloudProfile {
	return &gardencorev1beta1.CloudProfile{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: gardencorev1beta1.CloudProfileSpec{
			Type: "local",
			Kubernetes: gardencorev1beta1.KubernetesSettings{Versions: []gardencorev1beta1.ExpirableVersion{
				{Version: "1.36.3"}, {
					Version: "1.35.4", Classification: new(gardencorev1beta1.ClassificationDeprecated),
				},
			}},
			MachineImages: []gardencorev1beta1.MachineImage{
				{
					Name: "debian", Versions: []gardencorev1beta1.MachineImageVersion{
						{ExpirableVersion: gardencorev1beta1.ExpirableVersion{Version: "12.11.0"}},
						{ExpirableVersion: gardencorev1beta1.ExpirableVersion{Version: "12.12.0"}},
					},
				},
			},
			MachineTypes: []gardencorev1beta1.MachineType{
				{
					Name: "local", CPU: resource.MustParse("1"), GPU: resource.MustParse("0"),
					Memory: resource.MustParse("2Gi"),
				},
			},
			Regions: []gardencorev1beta1.Region{
				{Name: name, Zones: []gardencorev1beta1.AvailabilityZone{{Name: "0"}}},
			},
		},
	}
}

func newShoot(namespace, name, profile string, change ...func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: gardencorev1beta1.ShootSpec{
			CloudProfile:           &gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: profile},
			CredentialsBindingName: new("local"),
			Region:                 profile,
			Networking:             &gardencorev1beta1.Networking{Type: new("flannel"), Nodes: new("10.180.0.0/16")},
			Provider: gardencorev1beta1.Provider{Type: "local", Workers: []gardencorev1beta1.Worker{{
				Name: "pool", Minimum: 1, Maximum: 2, Machine: gardencorev1beta1.Machine{Type: "local"},
				Zones: []string{"0"},
			}}},
		},
	}
	for _, c := range change {
		c(shoot)
	}
	return shoot
}

func newSeed(name, region string) *gardencorev1beta1.Seed {
	return &gardencorev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: gardencorev1beta1.SeedSpec{
			Provider: gardencorev1beta1.SeedProvider{Type: "local", Region: region, Zones: []string{"0"}},
			Networks: gardencorev1beta1.SeedNetworks{
				Pods: "10.1.0.0/16", Services: "10.2.0.0/16", Nodes: new("172.18.0.0/24"),
			},
			Ingress: &gardencorev1beta1.Ingress{
				Domain: "ingress." + name + ".example", Controller: gardencorev1beta1.IngressController{Kind: "nginx"},
			},
			DNS: gardencorev1beta1.SeedDNS{
				Internal: &gardencorev1beta1.SeedDNSProviderConfig{
					Type: "local", Domain: "internal.example",
					CredentialsRef: corev1.ObjectReference{
						APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "dns",
					},
				},
				Defaults: []gardencorev1beta1.SeedDNSProviderConfig{{
					Type: "local", Domain: "shoots.example",
					CredentialsRef: corev1.ObjectReference{
						APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "dns",
					},
				}},
			},
		},
	}
}

// makeReady writes what a gardenlet would.
func makeReady(t *testing.T, seed *gardencorev1beta1.Seed) {
	t.Helper()
	eventually(t, func() error {
		if err := get(seed); err != nil { // garden-controller-manager writes conditions, too
			return err
		}
		seed.Status.LastOperation = &gardencorev1beta1.LastOperation{
			Type: gardencorev1beta1.LastOperationTypeReconcile, State: gardencorev1beta1.LastOperationStateSucceeded,
			LastUpdateTime: metav1.Now(),
		}
		seed.Status.Conditions = []gardencorev1beta1.Condition{{
			Type: gardencorev1beta1.SeedGardenletReady, Status: gardencorev1beta1.ConditionTrue, Reason: "Ready",
			Message:            "ready",
			LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		}}
		return env.Client.Status().Update(context.Background(), seed)
	})
}

func get(object client.Object) error {
	if err := env.Client.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
		return fmt.Errorf("get %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}
