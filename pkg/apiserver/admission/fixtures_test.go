package admission

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// aShoot returns a shoot of project demo with one pool of the provider local.
func aShoot(change ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1"},
		Spec: corev1beta1.ShootSpec{
			CloudProfile:           &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"},
			CredentialsBindingName: ptr.To("local"),
			Region:                 "here",
			Kubernetes:             corev1beta1.Kubernetes{Version: "1.36.3"},
			Networking:             &corev1beta1.Networking{Type: ptr.To("flannel"), Pods: ptr.To("10.3.0.0/16"), Services: ptr.To("10.4.0.0/16"), Nodes: ptr.To("10.180.0.0/16")},
			Provider: corev1beta1.Provider{Type: "local", Workers: []corev1beta1.Worker{{
				Name: "pool", Minimum: 1, Maximum: 2, Zones: []string{"a"},
				Machine: corev1beta1.Machine{Type: "small", Image: &corev1beta1.ShootMachineImage{Name: "debian", Version: ptr.To("12.12.0")}},
			}}},
		},
	}
	for _, c := range change {
		c(shoot)
	}
	return shoot
}

func workerless(shoot *corev1beta1.Shoot) {
	shoot.Spec.Provider.Workers, shoot.Spec.Networking, shoot.Spec.CredentialsBindingName = nil, nil, nil
}

// aSeed returns a seed with one zone.
func aSeed(change ...func(*corev1beta1.Seed)) *corev1beta1.Seed {
	seed := &corev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "local", Labels: map[string]string{"size": "small"}},
		Spec: corev1beta1.SeedSpec{
			Provider: corev1beta1.SeedProvider{Type: "local", Region: "here", Zones: []string{"a"}},
			Networks: corev1beta1.SeedNetworks{Pods: "10.1.0.0/16", Services: "10.2.0.0/16", Nodes: ptr.To("172.18.0.0/24")},
			Ingress:  &corev1beta1.Ingress{Domain: "ingress.seed.example"},
			DNS: corev1beta1.SeedDNS{
				Internal: &corev1beta1.SeedDNSProviderConfig{Type: "local", Domain: "internal.example"},
				Defaults: []corev1beta1.SeedDNSProviderConfig{{Type: "local", Domain: "shoots.example"}},
			},
		},
	}
	for _, c := range change {
		c(seed)
	}
	return seed
}

func aProject(change ...func(*corev1beta1.Project)) *corev1beta1.Project {
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Spec: corev1beta1.ProjectSpec{Namespace: ptr.To("garden-demo")}}
	for _, c := range change {
		c(project)
	}
	return project
}

// checkErrors holds what is found wrong against what is wanted: for each error its field, and a part of its text after a space.
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
