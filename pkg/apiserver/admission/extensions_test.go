package admission

import (
	"context"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/extensionuse"
)

func registration(name string,
	resources ...gardencorev1beta1.ControllerResource) *gardencorev1beta1.ControllerRegistration {
	return &gardencorev1beta1.ControllerRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       gardencorev1beta1.ControllerRegistrationSpec{Resources: resources},
	}
}

func offering(kind, extensionType string) gardencorev1beta1.ControllerResource {
	return gardencorev1beta1.ControllerResource{Kind: kind, Type: extensionType}
}

func localRegistrations() []*gardencorev1beta1.ControllerRegistration {
	fleet := offering("Extension", "federation")
	fleet.WorkerlessSupported = new(true)
	return []*gardencorev1beta1.ControllerRegistration{
		registration("provider-local", offering("Infrastructure", "local"), offering("ControlPlane", "local"),
			offering("Worker", "local"), offering("DNSRecord", "local")),
		registration("networking", offering("Network", "flannel"), offering("Network", "calico")),
		registration("os-debian", offering("OperatingSystemConfig", "debian")),
		registration("others", fleet, offering("Extension", "cache"), offering("ContainerRuntime", "gvisor")),
	}
}

func extending(types ...string) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) {
		for _, name := range types {
			s.Spec.Extensions = append(s.Spec.Extensions, gardencorev1beta1.Extension{Type: name})
		}
	}
}

func TestExtensionsAreRegistered(t *testing.T) {
	network := func(name string) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) { s.Spec.Networking.Type = &name }
	}
	disabled := func(s *gardencorev1beta1.Shoot) {
		s.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "unknown", Disabled: new(true)}}
	}
	tests := map[string]struct {
		shoot, old *gardencorev1beta1.Shoot
		want       []string
	}{
		"all there": {aShoot(extending("cache")), nil, nil},
		"network": {
			aShoot(network("cilium")), nil,
			[]string{
				"spec.networking.type no ControllerRegistration offers Network of this type; registered are calico, " +
					"flannel",
			},
		},
		"provider, once": {
			aShoot(func(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Type = "aws" }), nil,
			[]string{"spec.provider.type registered are local"},
		},
		"machine image": {
			aShoot(func(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Workers[0].Machine.Image.Name = "arch" }), nil,
			[]string{"spec.provider.workers[0].machine.image.name arch"},
		},
		"container runtime": {aShoot(func(s *gardencorev1beta1.Shoot) {
			s.Spec.Provider.Workers[0].CRI = &gardencorev1beta1.CRI{
				ContainerRuntimes: []gardencorev1beta1.ContainerRuntime{{Type: "gvisor"}, {Type: "kata"}},
			}
		}), nil, []string{"spec.provider.workers[0].cri.containerRuntimes[1].type kata"}},
		"extension":          {aShoot(extending("cache", "unknown")), nil, []string{"spec.extensions[1].type unknown"}},
		"disabled extension": {aShoot(disabled), nil, nil},
		"used before":        {aShoot(network("cilium")), aShoot(network("cilium")), nil},
		"DNS provider": {aShoot(func(s *gardencorev1beta1.Shoot) {
			s.Spec.DNS = &gardencorev1beta1.DNS{
				Providers: []gardencorev1beta1.DNSProvider{{Type: new("unmanaged")}, {Type: new("route53")}},
			}
		}), nil, []string{"spec.dns.providers[1].type route53"}},
		"no workers": {aShoot(workerless, extending("federation")), nil, nil},
		"needs workers": {
			aShoot(workerless, extending("cache")), nil, []string{"spec.extensions[0].type needs workers"},
		},
		"no workers, other provider": {
			aShoot(workerless, func(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Type = "aws" }), nil, nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			checkErrors(t, validateExtensions(test.shoot, test.old, registered(localRegistrations())), test.want...)
		})
	}
	checkErrors(t, unregistered(extensionuse.OfSeed(aSeed()), registered(nil)),
		"spec.provider.type no type of it is", "spec.dns.internal.type local", "spec.dns.defaults[0].type local")
}

func TestOfferedOnlyBy(t *testing.T) {
	registrations := append(localRegistrations(), registration("more", offering("Network", "flannel")))
	only := offeredOnlyBy("networking", registrations)
	if _, calico := only[extensionuse.KindType{Kind: "Network", Type: "calico"}]; len(only) != 1 || !calico {
		t.Errorf("only by networking: %v, want calico", only)
	}
	if usesAny(extensionuse.OfShoot(aShoot()), only) {
		t.Error("a shoot with flannel does not need calico")
	}
}

func TestPrimaryRegistrations(t *testing.T) {
	second := offering("Network", "flannel")
	second.Primary = new(false)
	checkErrors(t, validatePrimaries(registration("more", offering("Network", "cilium"), second), localRegistrations()))
	checkErrors(t, validatePrimaries(registration("networking", offering("Network", "flannel")), localRegistrations()))
	checkErrors(t, validatePrimaries(registration("more", offering("Network", "cilium"),
		offering("Network", "flannel")), localRegistrations()),
		`spec.resources[1].primary controllerregistration "networking" is the primary one`)
}

// lists is a Reader of whole lists.
type lists map[schema.GroupResource]runtime.Object

func (l lists) Get(_ context.Context, resource schema.GroupResource, _, name string) (runtime.Object, error) {
	return nil, apierrors.NewNotFound(resource, name)
}

func (l lists) List(_ context.Context, resource schema.GroupResource, _ string,
	_ fields.Selector) (runtime.Object, error) {
	return l[resource], nil
}

// A registration keeps what is used, unless another one offers it too.
func TestRegistrationsKeepWhatIsUsed(t *testing.T) {
	plugin := newControllerRegistrations()
	plugin.SetDependencies(&Dependencies{Reader: lists{
		gardencorev1beta1.Resource("shoots"): &gardencorev1beta1.ShootList{Items: []gardencorev1beta1.Shoot{*aShoot()}},
		gardencorev1beta1.Resource("seeds"):  &gardencorev1beta1.SeedList{},
	}})
	old := registration("networking", offering("Network", "flannel"), offering("Network", "calico"))
	second := registration("more", offering("Network", "flannel"))
	for name, test := range map[string]struct {
		changed *gardencorev1beta1.ControllerRegistration
		all     []*gardencorev1beta1.ControllerRegistration
		want    []string
	}{
		"unchanged":          {old, localRegistrations(), nil},
		"drops what is free": {registration("networking", offering("Network", "flannel")), localRegistrations(), nil},
		"drops what is used": {registration("networking", offering("Network", "calico")), localRegistrations(),
			[]string{
				"spec.resources Network of type flannel must stay: it is used by shoot garden-demo/member1",
			}},
		"drops what another offers": {registration("networking"), append(localRegistrations(), second), nil},
	} {
		t.Run(name, func(t *testing.T) {
			errs, err := plugin.validateKept(t.Context(), test.changed, old, test.all)
			if err != nil {
				t.Fatal(err)
			}
			checkErrors(t, errs, test.want...)
		})
	}
}

func TestExtensionLabels(t *testing.T) {
	tests := map[string]struct {
		object runtime.Object
		want   []string
	}{
		"shoot": {aShoot(extending("cache")), []string{
			"extensions.extensions.gardener.cloud/cache", "networking.extensions.gardener.cloud/flannel",
			"operatingsystemconfig.extensions.gardener.cloud/debian", "provider.extensions.gardener.cloud/local",
		}},
		"workerless shoot": {
			aShoot(workerless, extending("federation")),
			[]string{"extensions.extensions.gardener.cloud/federation", "provider.extensions.gardener.cloud/local"},
		},
		"seed": {
			aSeed(), []string{"dnsrecord.extensions.gardener.cloud/local", "provider.extensions.gardener.cloud/local"},
		},
		"cloud profile": {
			&gardencorev1beta1.CloudProfile{Spec: gardencorev1beta1.CloudProfileSpec{Type: "aws"}},
			[]string{"provider.extensions.gardener.cloud/aws"},
		},
		"bindings": {
			&gardencorev1beta1.SecretBinding{Provider: &gardencorev1beta1.SecretBindingProvider{Type: "aws, local"}},
			[]string{"provider.extensions.gardener.cloud/aws", "provider.extensions.gardener.cloud/local"},
		},
		"credentials": {
			&securityv1alpha1.CredentialsBinding{Provider: securityv1alpha1.CredentialsBindingProvider{Type: "aws"}},
			[]string{"provider.extensions.gardener.cloud/aws"},
		},
		"kinds without them": {&gardencorev1beta1.Quota{}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, labelled := extensionLabelsOf(test.object)
			if !slices.Equal(sets.List(got), sets.List(sets.New(test.want...))) || labelled != (test.want != nil) {
				t.Errorf("labels = %v (%v), want %v", sets.List(got), labelled, test.want)
			}
		})
	}
}

func TestSetExtensionLabels(t *testing.T) {
	shoot := aShoot(func(s *gardencorev1beta1.Shoot) {
		s.Labels = map[string]string{
			"mine": "1", "networking.extensions.gardener.cloud/calico": "true",
			"provider.extensions.gardener.cloud/local": "false", "extensions.gardener.cloud/other": "true",
		}
	})
	setExtensionLabels(shoot, sets.New("provider.extensions.gardener.cloud/local"))
	want := map[string]string{
		"mine": "1", "provider.extensions.gardener.cloud/local": "true", "extensions.gardener.cloud/other": "true",
	}
	if len(shoot.Labels) != len(want) {
		t.Errorf("labels = %v, want %v", shoot.Labels, want)
	}
	for key, value := range want {
		if shoot.Labels[key] != value {
			t.Errorf("label %s = %q, want %q", key, shoot.Labels[key], value)
		}
	}
	bare := aShoot()
	setExtensionLabels(bare, nil)
	if bare.Labels != nil {
		t.Errorf("labels = %v, want none", bare.Labels)
	}
}

func TestExtensionsAreForTheirClusters(t *testing.T) {
	offered := offers{
		{Kind: "Extension", Type: "both"}: {
			ClusterCompatibility: []gardencorev1beta1.ClusterType{
				gardencorev1beta1.ClusterTypeShoot, gardencorev1beta1.ClusterTypeSeed,
			},
		},
		{Kind: "Extension", Type: "plain"}: {},
	}
	var uses []extensionuse.Use
	for _, name := range []string{"both", "plain", "unknown"} {
		uses = append(uses, extensionuse.Use{
			KindType: extensionuse.KindType{Kind: "Extension", Type: name},
			Path:     field.NewPath("spec", "extensions").Key(name),
		})
	}
	if errs := incompatible(uses, gardencorev1beta1.ClusterTypeShoot, offered); len(errs) != 0 {
		t.Errorf("refused for a shoot: %v", errs)
	}
	errs := incompatible(uses, gardencorev1beta1.ClusterTypeSeed, offered)
	if len(errs) != 1 || errs[0].Field != "spec.extensions[plain]" {
		t.Errorf("refused for a seed: %v", errs)
	}
}
