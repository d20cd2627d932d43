// Package plantest has inputs of plans for tests: those of a shoot with one pool in the local landscape, and changes
// of them.
package plantest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

// Inputs are those of a shoot with one worker pool in the local landscape.
func Inputs() *plan.Inputs {
	credentials := corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "dns"}
	return &plan.Inputs{
		GardenIdentity: "garden", ProjectName: "demo",
		Credentials: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden-demo", Name: "local"},
		Seed: &gardencorev1beta1.Seed{
			ObjectMeta: metav1.ObjectMeta{Name: "local"},
			Spec: gardencorev1beta1.SeedSpec{
				Provider: gardencorev1beta1.SeedProvider{Type: "local", Region: "local"},
				Networks: gardencorev1beta1.SeedNetworks{
					Nodes: new("172.18.0.0/24"), Pods: "10.1.0.0/16", Services: "10.2.0.0/16",
					ShootDefaults: &gardencorev1beta1.ShootNetworks{
						Pods: new("10.3.0.0/16"), Services: new("10.4.0.0/16"),
					},
				},
				DNS: gardencorev1beta1.SeedDNS{
					Internal: &gardencorev1beta1.SeedDNSProviderConfig{
						Type: "local", Domain: "internal.local.trellis.garden", CredentialsRef: credentials,
					},
					Defaults: []gardencorev1beta1.SeedDNSProviderConfig{
						{Type: "local", Domain: "local.trellis.garden", CredentialsRef: credentials},
					},
				},
			},
		},
		CloudProfile: &gardencorev1beta1.CloudProfile{
			Spec: gardencorev1beta1.CloudProfileSpec{MachineTypes: []gardencorev1beta1.MachineType{
				{Name: "small", CPU: resource.MustParse("1"), Memory: resource.MustParse("2Gi")},
			}},
		},
		Shoot: &gardencorev1beta1.Shoot{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "garden-demo", Name: "member1", UID: "b8a8d6a4-0000-4000-8000-000000000000", Generation: 1,
			},
			Spec: gardencorev1beta1.ShootSpec{
				Region: "local", CredentialsBindingName: new("local"), SeedName: new("local"),
				DNS:        &gardencorev1beta1.DNS{Domain: new("member1.demo.local.trellis.garden")},
				Kubernetes: gardencorev1beta1.Kubernetes{Version: "1.36.3"},
				Networking: &gardencorev1beta1.Networking{
					Type: new("flannel"), Nodes: new("10.180.1.0/24"), Pods: new("10.3.0.0/16"),
					Services: new("10.4.0.0/16"),
				},
				Provider: gardencorev1beta1.Provider{Type: "local", Workers: []gardencorev1beta1.Worker{{
					Name: "pool", Minimum: 1, Maximum: 2, Zones: []string{"a"},
					Machine: gardencorev1beta1.Machine{
						Type: "small", Image: &gardencorev1beta1.ShootMachineImage{
							Name: "debian", Version: new("12.11.0"),
						},
					},
				}}},
			},
		},
	}
}

// Workerless makes the inputs those of a fleet.
func Workerless(in *plan.Inputs) {
	in.Credentials = nil
	in.Shoot.Name = "fleet"
	in.Shoot.Spec.DNS.Domain = new("fleet.demo.local.trellis.garden")
	in.Shoot.Spec.Networking, in.Shoot.Spec.CredentialsBindingName = nil, nil
	in.Shoot.Spec.Provider.Workers = nil
	in.Shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "federation"}}
	in.Registrations = []gardencorev1beta1.ControllerRegistration{{Spec: gardencorev1beta1.ControllerRegistrationSpec{
		Resources: []gardencorev1beta1.ControllerResource{
			{Kind: "Extension", Type: "federation", WorkerlessSupported: new(true)},
		},
	}}}
}

// Gateway is that of the seed.
func Gateway() config.Gateway {
	return config.Gateway{Address: "172.18.0.2", TLSPort: 443, ProxyPort: 8443, WireGuardPort: 51820}
}

// Images has an image of every name.
func Images() imagevector.Vector {
	vector := imagevector.Vector{}
	for _, name := range append(components.Images(), "kubelet") {
		source := imagevector.Source{Name: name, Repository: "registry.example/" + name}
		if !strings.HasPrefix(name, "kube") {
			source.Tag = "v1"
		}
		vector[name] = source
	}
	return vector
}

// New plans with the inputs changed.
func New(t *testing.T, changes ...func(*plan.Inputs)) *plan.Plan {
	t.Helper()
	in := Inputs()
	for _, change := range changes {
		change(in)
	}
	return Plan(t, in)
}

// Plan plans with the gateway and the images of tests.
func Plan(t *testing.T, in *plan.Inputs) *plan.Plan {
	t.Helper()
	p, err := plan.New(in, Gateway(), Images())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Worker changes the first pool of the inputs.
func Worker(change func(*gardencorev1beta1.Worker)) func(*plan.Inputs) {
	return func(in *plan.Inputs) { change(&in.Shoot.Spec.Provider.Workers[0]) }
}

// Hibernated makes the inputs those of a shoot that is to sleep, or does so already.
func Hibernated(asleep bool) func(*plan.Inputs) {
	return func(in *plan.Inputs) {
		in.Shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
		in.Asleep = asleep
	}
}

// HighlyAvailable makes the inputs those of a shoot whose control plane outlasts the failure of a node or zone, on a
// seed of several nodes.
func HighlyAvailable(tolerance gardencorev1beta1.FailureToleranceType) func(*plan.Inputs) {
	return func(in *plan.Inputs) {
		in.Shoot.Spec.ControlPlane = &gardencorev1beta1.ControlPlane{
			HighAvailability: &gardencorev1beta1.HighAvailability{
				FailureTolerance: gardencorev1beta1.FailureTolerance{Type: tolerance},
			},
		}
	}
}

// BackedUp makes the inputs those of a shoot in production on a seed with an object store.
func BackedUp(in *plan.Inputs) {
	in.Seed.UID = "seed-uid"
	in.Seed.Spec.Backup = &gardencorev1beta1.Backup{
		Provider: "local", Region: new("local"), CredentialsRef: &corev1.ObjectReference{
			APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup",
		},
	}
	in.Shoot.Spec.Purpose = new(gardencorev1beta1.ShootPurposeProduction)
}
