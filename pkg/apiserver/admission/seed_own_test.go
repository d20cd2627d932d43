package admission

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// objects is a garden by resource, namespace and name.
type objects map[string]runtime.Object

func (o objects) Get(_ context.Context, resource schema.GroupResource, namespace, name string) (runtime.Object, error) {
	if object, found := o[resource.Resource+" "+namespace+"/"+name]; found {
		return object, nil
	}
	return nil, apierrors.NewNotFound(resource, name)
}

func (o objects) List(context.Context, schema.GroupResource, string, fields.Selector) (runtime.Object, error) {
	return &gardencorev1beta1.ProjectList{}, nil
}

func seedOf(change ...func(*gardencorev1beta1.Seed)) *gardencorev1beta1.Seed {
	seed := aSeed()
	gardencorev1beta1.SetDefaultsSeed(seed)
	for _, c := range change {
		c(seed)
	}
	return seed
}

// saying returns a configuration of gardenlet with a seedConfig.
func saying(seedConfig string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: []byte(fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"seedConfig":%s}`,
		seedmanagementv1alpha1.GardenletConfigurationAPIVersion, seedmanagementv1alpha1.GardenletConfigurationKind,
		seedConfig))}
}

// wholeSeed is the specification of aSeed, with taints.
const wholeSeed = `{"provider":{"type":"local","region":"here","zones":["a"]},"networks":{"pods":"10.1.0.0/16","services":"10.2.0.0/16","nodes":"172.18.0.0/24"},
	"ingress":{"domain":"ingress.seed.example","controller":{"kind":""}},"dns":{"internal":{"type":"local","domain":"internal.example","credentialsRef":{}},
	"defaults":[{"type":"local","domain":"shoots.example","credentialsRef":{}}]},"taints":[{"key":"mine"}]}`

func tainted(seed *gardencorev1beta1.Seed) {
	seed.Spec.Taints = []gardencorev1beta1.SeedTaint{{Key: "mine"}}
}

func TestSeedsDoNotDecideAboutThemselves(t *testing.T) {
	label := func(key, value string) func(*gardencorev1beta1.Seed) {
		return func(s *gardencorev1beta1.Seed) { metav1.SetMetaDataLabel(&s.ObjectMeta, key, value) }
	}
	gardenlet := &seedmanagementv1alpha1.Gardenlet{}
	gardenlet.Spec.Config = saying(`{"metadata":{"labels":{"stage":"new"}},"spec":` + wholeSeed + `}`)
	managed := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "local"}}
	managed.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: "base"}
	managed.Spec.Gardenlet.Config = saying(`{"spec":{"taints":[{"key":"mine"}]}}`)
	base := aShoot(onSeed("parent"), func(s *gardencorev1beta1.Shoot) {
		s.Spec.Provider.Workers[0].Zones = []string{"b"}
		s.Spec.Networking.Pods, s.Spec.Networking.Services, s.Spec.Networking.Nodes = new("10.1.0.0/16"),
			new("10.2.0.0/16"), new("172.18.0.0/24")
	})
	parent := seedOf(func(s *gardencorev1beta1.Seed) { s.Spec.DNS.Defaults[0].Domain = "other.example" })
	alone, written := objects{}, objects{"gardenlets garden/local": gardenlet}
	hosted := objects{"managedseeds garden/local": managed, "shoots garden/base": base, "seeds /parent": parent}
	for name, test := range map[string]struct {
		garden objects
		change func(*gardencorev1beta1.Seed)
		want   string
	}{
		"nothing": {alone, func(*gardencorev1beta1.Seed) {}, ""},
		"its own business": {alone, func(s *gardencorev1beta1.Seed) {
			s.Spec.Settings.ExcessCapacityReservation.Enabled = new(false)
			s.Spec.Volume = &gardencorev1beta1.SeedVolume{}
		}, ""},
		"its finalizer": {
			alone, func(s *gardencorev1beta1.Seed) { s.Finalizers = []string{gardencorev1beta1.GardenerName} }, "",
		},
		"another finalizer": {
			alone, func(s *gardencorev1beta1.Seed) { s.Finalizers = []string{"mine"} }, "metadata.finalizers: mine",
		},
		"a label of extensions": {alone, label("provider.extensions.gardener.cloud/local", "true"), ""},
		"a label":               {alone, label("stage", "new"), "metadata.labels[stage]: operators decide"},
		"an annotation": {
			alone, func(s *gardencorev1beta1.Seed) { s.Annotations = map[string]string{"a": "b"} },
			"metadata.annotations[a]",
		},
		"an operation": {alone, func(s *gardencorev1beta1.Seed) {
			s.Annotations = map[string]string{gardencorev1beta1.GardenerOperation: "x"}
		}, "metadata.annotations[gardener.cloud/operation]"},
		"credentials": {alone, func(s *gardencorev1beta1.Seed) {
			s.Spec.DNS.Internal.CredentialsRef = corev1.ObjectReference{Kind: "Secret", Name: "x"}
		}, "spec.dns: operators decide"},
		"resources": {alone, func(s *gardencorev1beta1.Seed) {
			s.Spec.Resources = []gardencorev1beta1.NamedResourceReference{{Name: "a"}}
		}, "spec.resources"},
		"backup": {
			alone, func(s *gardencorev1beta1.Seed) { s.Spec.Backup = &gardencorev1beta1.Backup{} }, "spec.backup",
		},
		"region": {alone, func(s *gardencorev1beta1.Seed) { s.Spec.Provider.Region = "there" }, "spec.provider"},
		"taints": {
			alone, tainted, "kubectl edit seed local, or in spec.config.seedConfig of Gardenlet garden/local",
		},
		"visibility": {
			alone, func(s *gardencorev1beta1.Seed) { s.Spec.Settings.Scheduling.Visible = false }, "spec.settings",
		},
		"extensions": {
			alone, func(s *gardencorev1beta1.Seed) { s.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "x"}} },
			"spec.extensions",
		},
		"access restrictions": {alone, func(s *gardencorev1beta1.Seed) {
			s.Spec.AccessRestrictions = []gardencorev1beta1.AccessRestriction{{Name: "x"}}
		}, "spec.accessRestrictions"},

		"what its Gardenlet says": {
			written, func(s *gardencorev1beta1.Seed) { tainted(s); label("stage", "new")(s) }, "",
		},
		"a label with another value": {written, label("stage", "old"), "metadata.labels[stage]"},
		"what its Gardenlet says, and more": {
			written, func(s *gardencorev1beta1.Seed) { tainted(s); s.Spec.Provider.Region = "there" },
			"spec.provider: operators decide",
		},
		"what its ManagedSeed says": {hosted, tainted, ""},
		"what its shoot is like": {
			hosted, func(s *gardencorev1beta1.Seed) { s.Spec.Provider.Zones = []string{"b"} }, "",
		},
		"what its shoot is not like": {
			hosted, func(s *gardencorev1beta1.Seed) { s.Spec.Provider.Zones = []string{"c"} },
			"spec.gardenlet.config.seedConfig of ManagedSeed garden/local",
		},
		"the domains of the seed's host": {
			hosted, func(s *gardencorev1beta1.Seed) { s.Spec.DNS.Defaults[0].Domain = "other.example" }, "",
		},
		"domains of nobody, taints as said": {
			hosted, func(s *gardencorev1beta1.Seed) { tainted(s); s.Spec.DNS.Defaults[0].Domain = "mine.example" },
			"spec.dns: operators decide",
		},
		"a label that its ManagedSeed lacks": {hosted, label("stage", "new"), "metadata.labels[stage]"},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := newSeedRestriction()
			plugin.SetDependencies(&Dependencies{Reader: test.garden})
			request := write{
				gardencorev1beta1.Resource("seeds"), "", seedOf(test.change), seedOf(),
				gardencorev1beta1.SeedUserNamePrefix + "local",
			}
			checkRefusal(t, plugin.Validate(t.Context(), request.attributes(), nil), test.want)
		})
	}
}

func TestSeedsDoNotMarkWhatTheyHost(t *testing.T) {
	uid := func(s *gardencorev1beta1.Shoot) { s.UID = "1" }
	asked := func(value string) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) {
			s.Annotations = map[string]string{gardencorev1beta1.GardenerOperation: value}
		}
	}
	confirmed := func(s *gardencorev1beta1.Shoot) {
		s.Annotations = map[string]string{gardencorev1beta1.AnnotationConfirmationRestoreETCD: "2026-01-01T12:00:00Z"}
	}
	for name, test := range map[string]struct {
		subresource string
		old, change func(*gardencorev1beta1.Shoot)
		want        string
	}{
		"growth": {"", uid, func(s *gardencorev1beta1.Shoot) {
			s.Annotations = map[string]string{fleetv1alpha1.AllowGrowthAnnotation: "pools"}
		}, "federation.trellis.garden/growth"},
		"growth, by its status": {"status", uid, func(s *gardencorev1beta1.Shoot) {
			s.Annotations = map[string]string{fleetv1alpha1.AllowGrowthAnnotation: "pools"}
		}, "federation.trellis.garden/growth"},
		"an operation is done":  {"", asked("rotate-a;rotate-b"), asked("rotate-b"), ""},
		"all operations are":    {"", asked("rotate-a"), uid, ""},
		"asks for an operation": {"", uid, asked("rotate-a"), "metadata.annotations[gardener.cloud/operation]"},
		"asks for a restore": {
			"", uid, asked("restore-etcd=2026-01-01T12:00:00Z"), "metadata.annotations[gardener.cloud/operation]",
		},
		"a restore is taken": {"", confirmed, uid, ""},
		"confirms a restore": {
			"", uid, confirmed, "metadata.annotations[confirmation.gardener.cloud/restore-etcd]",
		},
		"its finalizer": {
			"", uid, func(s *gardencorev1beta1.Shoot) { s.Finalizers = []string{"gardener"} }, "",
		},
		"another's finalizer": {
			"", func(s *gardencorev1beta1.Shoot) { s.Finalizers = []string{"x/y"} }, uid, "metadata.finalizers: x/y",
		},
		"an owner": {
			"", uid, func(s *gardencorev1beta1.Shoot) { s.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} },
			"metadata.ownerReferences",
		},
		"labels of the server": {
			"status", uid, func(s *gardencorev1beta1.Shoot) {
				s.Labels = map[string]string{"name.seed.gardener.cloud/one": "true"}
			}, "",
		},
		"labels of extensions": {"status", uid, func(s *gardencorev1beta1.Shoot) {
			s.Labels = map[string]string{"provider.extensions.gardener.cloud/x": "true"}
		}, "metadata.labels"},
		"its report": {"status", uid, func(s *gardencorev1beta1.Shoot) {
			s.Status.SeedName, s.Status.UID, s.Status.TechnicalID = new("one"), "1", "shoot--demo--member1"
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := newSeedRestriction()
			plugin.SetDependencies(&Dependencies{Reader: objects{"projects /demo": aProject()}})
			object, old := aShoot(onSeed("one"), uid, test.change), aShoot(onSeed("one"), uid, test.old)
			checkRefusal(t, plugin.Validate(t.Context(),
				write{gardencorev1beta1.Resource("shoots"), test.subresource, object, old, ""}.attributes(), nil),
				test.want)
		})
	}
}
