package extensionuse

import (
	"slices"
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func named(uses []Use) []string {
	var names []string
	for _, use := range uses {
		names = append(names, use.Kind+"/"+use.Type+" "+use.Path.String())
	}
	return names
}

func TestOfShoot(t *testing.T) {
	fleet := gardencorev1beta1.Extension{Type: "federation"}
	off := gardencorev1beta1.Extension{Type: "logging", Disabled: new(true)}
	shoot := &gardencorev1beta1.Shoot{Spec: gardencorev1beta1.ShootSpec{
		Provider:   gardencorev1beta1.Provider{Type: "local"},
		Networking: &gardencorev1beta1.Networking{Type: new("flannel")},
		Extensions: []gardencorev1beta1.Extension{off, fleet},
	}}
	if got, want := named(OfShoot(shoot)),
		[]string{"Extension/federation spec.extensions[1].type"}; !slices.Equal(got, want) {
		t.Errorf("without workers: got %v, want %v", got, want)
	}
	shoot.Spec.Provider.Workers = []gardencorev1beta1.Worker{
		{Machine: gardencorev1beta1.Machine{Image: &gardencorev1beta1.ShootMachineImage{Name: "debian"}}},
	}
	want := []string{
		"Extension/federation spec.extensions[1].type", "Network/flannel spec.networking.type",
		"ControlPlane/local spec.provider.type", "Infrastructure/local spec.provider.type",
		"Worker/local spec.provider.type",
		"OperatingSystemConfig/debian spec.provider.workers[0].machine.image.name",
	}
	if got := named(OfShoot(shoot)); !slices.Equal(got, want) {
		t.Errorf("with workers: got %v, want %v", got, want)
	}
}

// An extension that a seed disables is not asked for, so it need not be installed.
func TestOfSeed(t *testing.T) {
	seed := &gardencorev1beta1.Seed{Spec: gardencorev1beta1.SeedSpec{
		Provider:   gardencorev1beta1.SeedProvider{Type: "local"},
		Extensions: []gardencorev1beta1.Extension{{Type: "logging", Disabled: new(true)}, {Type: "metrics"}},
	}}
	want := []string{"ControlPlane/local spec.provider.type", "Extension/metrics spec.extensions[1].type"}
	if got := named(OfSeed(seed)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
