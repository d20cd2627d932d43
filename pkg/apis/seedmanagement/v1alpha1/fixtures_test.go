package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1 "github.com/trellis-garden/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Objects that are accepted as they are; tests change one thing of them.

var tier = map[string]string{"tier": "seeds"}

// aConfig is a GardenletConfiguration with a change to its fields.
func aConfig(change ...func(map[string]any)) *runtime.RawExtension {
	config := map[string]any{
		"apiVersion": GardenletConfigurationAPIVersion, "kind": GardenletConfigurationKind,
		"seedConfig": map[string]any{
			"metadata": map[string]any{"labels": tier},
			"spec": map[string]any{
				"provider": map[string]any{"type": "local", "region": "here", "zones": []string{"a"}},
				"networks": map[string]any{"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
				"ingress": map[string]any{
					"domain": "ingress.example.com", "controller": map[string]any{"kind": "nginx"},
				},
				"dns": map[string]any{"internal": map[string]any{
					"type": "local", "domain": "internal.example.com",
					"credentialsRef": map[string]any{
						"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "dns",
					},
				}},
			},
		},
	}
	for _, c := range change {
		c(config)
	}
	data, err := json.Marshal(config)
	if err != nil {
		panic(err) // a mistake in the test
	}
	return &runtime.RawExtension{Raw: data}
}

func aManagedSeed() *ManagedSeed {
	managedSeed := &ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "europe", ResourceVersion: "1"},
		Spec:       ManagedSeedSpec{Shoot: &Shoot{Name: "europe"}, Gardenlet: GardenletConfig{Config: aConfig()}},
	}
	SetDefaultsManagedSeed(managedSeed)
	return managedSeed
}

func aGardenlet() *Gardenlet {
	gardenlet := &Gardenlet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "europe", ResourceVersion: "1"},
		Spec: GardenletSpec{
			Deployment: GardenletSelfDeployment{
				Helm: GardenletHelm{
					OCIRepository: gardencorev1.OCIRepository{Ref: new("registry.example.com/charts/gardenlet:v1")},
				},
			},
			Config: aConfig(),
		},
	}
	SetDefaultsGardenlet(gardenlet)
	return gardenlet
}

func aManagedSeedSet() *ManagedSeedSet {
	set := &ManagedSeedSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "europe", ResourceVersion: "1"},
		Spec: ManagedSeedSetSpec{
			Selector: metav1.LabelSelector{MatchLabels: tier},
			Template: ManagedSeedTemplate{
				ObjectMeta: metav1.ObjectMeta{Labels: tier},
				Spec:       ManagedSeedSpec{Gardenlet: GardenletConfig{Config: aConfig()}},
			},
			ShootTemplate: gardencorev1beta1.ShootTemplate{ObjectMeta: metav1.ObjectMeta{Labels: tier},
				Spec: gardencorev1beta1.ShootSpec{
					CloudProfile: &gardencorev1beta1.CloudProfileReference{
						Kind: "CloudProfile", Name: "local",
					},
					CredentialsBindingName: new("local"),
					Region:                 "here",
					Kubernetes:             gardencorev1beta1.Kubernetes{Version: "1.36.3"},
					Networking: &gardencorev1beta1.Networking{
						Type: new("flannel"), Nodes: new("10.180.0.0/16"),
					},
					Provider: gardencorev1beta1.Provider{Type: "local", Workers: []gardencorev1beta1.Worker{{
						Name: "pool", Minimum: 1, Maximum: 2, Machine: gardencorev1beta1.Machine{Type: "local"},
						Zones: []string{"a"},
					}}},
				}},
		},
	}
	SetDefaultsManagedSeedSet(set)
	return set
}

// expectError wants one error that names the field and holds the message; none when path is empty.
func expectError(t *testing.T, errs field.ErrorList, path, message string) {
	t.Helper()
	switch {
	case path == "" && len(errs) > 0:
		t.Errorf("is refused: %v", errs.ToAggregate())
	case path != "" && (len(errs) != 1 || errs[0].Field != path || !strings.Contains(errs[0].Error(), message)):
		t.Errorf("want %s: …%s…, got %v", path, message, errs)
	}
}
