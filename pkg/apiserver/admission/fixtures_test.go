package admission

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// aShoot returns a shoot of project demo with one pool of the provider local.
func aShoot(change ...func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1"},
		Spec: gardencorev1beta1.ShootSpec{
			CloudProfile:           &gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"},
			CredentialsBindingName: new("local"),
			Region:                 "here",
			Kubernetes:             gardencorev1beta1.Kubernetes{Version: "1.36.3"},
			Networking: &gardencorev1beta1.Networking{
				Type: new("flannel"), Pods: new("10.3.0.0/16"), Services: new("10.4.0.0/16"),
				Nodes: new("10.180.0.0/16"),
			},
			Provider: gardencorev1beta1.Provider{Type: "local", Workers: []gardencorev1beta1.Worker{{
				Name: "pool", Minimum: 1, Maximum: 2, Zones: []string{"a"},
				Machine: gardencorev1beta1.Machine{
					Type: "small", Image: &gardencorev1beta1.ShootMachineImage{Name: "debian", Version: new("12.12.0")},
				},
			}}},
		},
	}
	for _, c := range change {
		c(shoot)
	}
	return shoot
}

func workerless(shoot *gardencorev1beta1.Shoot) {
	shoot.Spec.Provider.Workers, shoot.Spec.Networking, shoot.Spec.CredentialsBindingName = nil, nil, nil
}

// aSeed returns a seed with one zone.
func aSeed(change ...func(*gardencorev1beta1.Seed)) *gardencorev1beta1.Seed {
	seed := &gardencorev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "local", Labels: map[string]string{"size": "small"}},
		Spec: gardencorev1beta1.SeedSpec{
			Provider: gardencorev1beta1.SeedProvider{Type: "local", Region: "here", Zones: []string{"a"}},
			Networks: gardencorev1beta1.SeedNetworks{
				Pods: "10.1.0.0/16", Services: "10.2.0.0/16", Nodes: new("172.18.0.0/24"),
			},
			Ingress: &gardencorev1beta1.Ingress{Domain: "ingress.seed.example"},
			DNS: gardencorev1beta1.SeedDNS{
				Internal: &gardencorev1beta1.SeedDNSProviderConfig{Type: "local", Domain: "internal.example"},
				Defaults: []gardencorev1beta1.SeedDNSProviderConfig{{Type: "local", Domain: "shoots.example"}},
			},
		},
	}
	for _, c := range change {
		c(seed)
	}
	return seed
}

func aProject(change ...func(*gardencorev1beta1.Project)) *gardencorev1beta1.Project {
	project := &gardencorev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Spec: gardencorev1beta1.ProjectSpec{Namespace: new("garden-demo")},
	}
	for _, c := range change {
		c(project)
	}
	return project
}

// checkErrors holds what is found wrong against what is wanted: for each error its field, and a part of its text after
// a space.
func checkErrors(t *testing.T, errs field.ErrorList, want ...string) {
	t.Helper()
	if len(errs) != len(want) {
		t.Errorf("errors = %v\nwant %d: %v", errs, len(want), want)
		return
	}
	for i, err := range errs {
		path, text, _ := strings.Cut(want[i], " ")
		if err.Field != path || !strings.Contains(err.Error(), text) {
			t.Errorf("error %d = %v\nwant one of %s that says %q", i, err, path, text)
		}
	}
}

// checkRefusal holds an error against a part of its text; an empty part means no error.
func checkRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
		t.Errorf("error = %v, want it to say %q", err, want)
	}
}

func TestEveryPluginHasItsPlace(t *testing.T) {
	plugins := registeredPlugins()
	for _, name := range plugins {
		if !slices.Contains(Order, name) {
			t.Errorf("%s is registered and has no place in Order", name)
		}
	}
	seen := map[string]bool{}
	for _, name := range Order {
		if seen[name] {
			t.Errorf("%s has two places in Order", name)
		}
		seen[name] = true
	}
}
