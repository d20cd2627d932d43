package admission

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

func aProfile() *gardencorev1beta1.CloudProfileSpec {
	return &gardencorev1beta1.CloudProfileSpec{
		Kubernetes: gardencorev1beta1.KubernetesSettings{
			Versions: []gardencorev1beta1.ExpirableVersion{{Version: "1.36.3"}, {Version: "1.35.4"}},
		},
		MachineImages: []gardencorev1beta1.MachineImage{
			{
				Name: "debian", Versions: []gardencorev1beta1.MachineImageVersion{
					{ExpirableVersion: gardencorev1beta1.ExpirableVersion{Version: "12.12.0"}},
					{ExpirableVersion: gardencorev1beta1.ExpirableVersion{Version: "12.11.0"}},
				},
			},
		},
		MachineTypes: []gardencorev1beta1.MachineType{{Name: "small"}, {Name: "large"}},
		VolumeTypes:  []gardencorev1beta1.VolumeType{{Name: "ssd"}},
		Regions: []gardencorev1beta1.Region{
			{Name: "here", Zones: []gardencorev1beta1.AvailabilityZone{{Name: "a"}, {Name: "b"}}}, {Name: "there"},
		},
	}
}

func TestRemovalsFromProfile(t *testing.T) {
	change := func(remove func(*gardencorev1beta1.CloudProfileSpec)) offer {
		changed := aProfile()
		remove(changed)
		return offerOf(aProfile()).Difference(offerOf(changed))
	}
	deleted := aShoot(func(s *gardencorev1beta1.Shoot) { s.Name, s.DeletionTimestamp = "deleted", new(metav1.Now()) })
	older := aShoot(func(s *gardencorev1beta1.Shoot) {
		s.Name = "older"
		s.Spec.Provider.Workers[0].Kubernetes = &gardencorev1beta1.WorkerKubernetes{Version: new("1.35.4")}
		s.Spec.Provider.Workers[0].Volume = &gardencorev1beta1.Volume{Type: new("ssd")}
	})
	tests := map[string]struct {
		remove func(*gardencorev1beta1.CloudProfileSpec)
		want   []string
	}{
		"nothing": {func(*gardencorev1beta1.CloudProfileSpec) {}, nil},
		"what nobody uses": {func(p *gardencorev1beta1.CloudProfileSpec) {
			p.MachineTypes, p.Regions, p.MachineImages[0].Versions = p.MachineTypes[:1], p.Regions[:1],
				p.MachineImages[0].Versions[:1]
		}, nil},
		"version": {
			func(p *gardencorev1beta1.CloudProfileSpec) { p.Kubernetes.Versions = p.Kubernetes.Versions[1:] },
			[]string{
				"spec.kubernetes.versions 1.36.3 cannot be removed: it is still used by shoot garden-demo/member1, " +
					"shoot garden-demo/older; set its expirationDate",
			},
		},
		"version of a pool": {
			func(p *gardencorev1beta1.CloudProfileSpec) { p.Kubernetes.Versions = p.Kubernetes.Versions[:1] },
			[]string{"spec.kubernetes.versions 1.35.4 cannot be removed: it is still used by shoot garden-demo/older;"},
		},
		"image": {
			func(p *gardencorev1beta1.CloudProfileSpec) { p.MachineImages = nil },
			[]string{"spec.machineImages debian 12.12.0"},
		},
		"machine type": {
			func(p *gardencorev1beta1.CloudProfileSpec) { p.MachineTypes = nil },
			[]string{"spec.machineTypes usable: false"},
		},
		"volume type": {
			func(p *gardencorev1beta1.CloudProfileSpec) { p.VolumeTypes = nil }, []string{"spec.volumeTypes ssd"},
		},
		"zone": {
			func(p *gardencorev1beta1.CloudProfileSpec) { p.Regions[0].Zones = p.Regions[0].Zones[1:] },
			[]string{"spec.regions here, zone a"},
		},
		"region": {
			func(p *gardencorev1beta1.CloudProfileSpec) { p.Regions = p.Regions[1:] },
			[]string{"spec.regions here cannot", "spec.regions here, zone a"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			checkErrors(t, removalErrors([]profileUsers{
				{change(test.remove), []*gardencorev1beta1.Shoot{aShoot(), older, deleted}},
			}), test.want...)
		})
	}
}

func TestSummary(t *testing.T) {
	if got, want := summary([]string{"a", "b"}), "a, b"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := summary([]string{"a", "b", "c", "d", "e", "f", "g"}), "a, b, c, d, e and 2 more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRemovalsFromSeed(t *testing.T) {
	shoots := []*gardencorev1beta1.Shoot{
		aShoot(named("member1.demo.shoots.example")),
		aShoot(named("own.example"), func(s *gardencorev1beta1.Shoot) { s.Name = "own" }),
	}
	zoneless := aSeed(func(s *gardencorev1beta1.Seed) { s.Spec.Provider.Zones = []string{"b"} })
	nameless := aSeed(func(s *gardencorev1beta1.Seed) { s.Spec.DNS.Defaults = nil })
	checkErrors(t, validateSeedRemovals(aSeed(), aSeed(), shoots))
	checkErrors(t, validateSeedRemovals(zoneless, aSeed(), nil))
	checkErrors(t, validateSeedRemovals(zoneless, aSeed(), shoots),
		"spec.provider.zones a cannot be removed: control planes run there, those of shoot garden-demo/member1, "+
			"shoot garden-demo/own")
	checkErrors(t, validateSeedRemovals(nameless, aSeed(), shoots),
		"spec.dns.defaults shoots.example cannot be removed: it is in the names of shoot garden-demo/member1")
	checkErrors(t, validateSeedRemovals(nameless, aSeed(), shoots[1:]))
}

func TestNamespacesOfProjects(t *testing.T) {
	other := aProject(func(p *gardencorev1beta1.Project) { p.Name = "other" })
	operators := aProject(func(p *gardencorev1beta1.Project) { p.Spec.Namespace = new("garden") })
	checkErrors(t, validateNamespaceIsFree(aProject(), nil))
	checkErrors(t, validateNamespaceIsFree(aProject(), []*gardencorev1beta1.Project{aProject()}))
	checkErrors(t, validateNamespaceIsFree(aProject(), []*gardencorev1beta1.Project{other}),
		"spec.namespace belongs to another project; leave the field out to get namespace garden-demo")
	checkErrors(t, validateNamespaceIsFree(operators, nil), "spec.namespace garden's own project")
}

func assigned(seed string) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) { s.Spec.SeedName = &seed }
}

func TestBastionIsCompleted(t *testing.T) {
	newBastion := func(shoot string) *operationsv1alpha1.Bastion {
		b := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "cli-1"}}
		b.Spec.ShootRef.Name, b.Spec.SeedName = shoot, new("forged")
		setAnnotation(b, gardencorev1beta1.GardenerCreatedBy, "forged")
		return b
	}
	complete := newBastion("member1")
	checkErrors(t, completeBastion(complete, aShoot(assigned("local")), "alice"))
	if *complete.Spec.SeedName != "local" || *complete.Spec.ProviderType != "local" ||
		complete.Annotations[gardencorev1beta1.GardenerCreatedBy] != "alice" {
		t.Errorf("bastion = %+v", complete)
	}
	forged := newBastion("member1")
	keepBastion(forged, complete)
	if *forged.Spec.SeedName != "local" || forged.Annotations[gardencorev1beta1.GardenerCreatedBy] != "alice" {
		t.Errorf("changed bastion = %+v, want it to stay", forged)
	}
	noSSH := func(s *gardencorev1beta1.Shoot) {
		s.Spec.Provider.WorkersSettings = &gardencorev1beta1.WorkersSettings{SSHAccess: &gardencorev1beta1.SSHAccess{}}
	}
	for name, test := range map[string]struct {
		shoot *gardencorev1beta1.Shoot
		want  string
	}{
		"no shoot":    {nil, "spec.shootRef.name Not found"},
		"no seed yet": {aShoot(), "spec.shootRef.name not been assigned to a seed"},
		"being deleted": {
			aShoot(assigned("local"), func(s *gardencorev1beta1.Shoot) { s.DeletionTimestamp = new(metav1.Now()) }),
			"spec.shootRef.name being deleted",
		},
		"no workers": {aShoot(assigned("local"), workerless), "spec.shootRef.name no workers"},
		"no SSH":     {aShoot(assigned("local"), noSSH), "spec.shootRef.name sshAccess.enabled"},
	} {
		t.Run(name, func(t *testing.T) {
			checkErrors(t, completeBastion(newBastion("member1"), test.shoot, "alice"), test.want)
		})
	}
	checkErrors(t, completeBastion(newBastion(""), nil, "alice"), "spec.shootRef.name Required")
}

func TestBastionHasToBeOffered(t *testing.T) {
	offered := registered([]*gardencorev1beta1.ControllerRegistration{
		{Spec: gardencorev1beta1.ControllerRegistrationSpec{Resources: []gardencorev1beta1.ControllerResource{
			{Kind: "Infrastructure", Type: "local"}, {Kind: "Bastion", Type: "cloud"},
		}}},
	})
	checkErrors(t, validateBastionIsOffered("cloud", offered))
	checkErrors(t, validateBastionIsOffered("local", offered),
		"spec.shootRef.name no ControllerRegistration offers bastions of the shoot's provider \"local\"")
}

func TestShootForManagedSeed(t *testing.T) {
	managed := func(name, config string) *seedmanagementv1alpha1.ManagedSeed {
		m := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}}
		m.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: "member1"}
		if config != "" {
			m.Spec.Gardenlet.Config = &runtime.RawExtension{
				Raw: []byte(`{"apiVersion":"gardenlet.config.gardener.cloud/v1alpha1","kind":"GardenletConfiguration","seedConfig":{"spec":` + config + `}}`),
			}
		}
		return m
	}
	asleep := aShoot(func(s *gardencorev1beta1.Shoot) {
		s.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
	})
	checkErrors(t, validateShootForSeed(managed("a", ""), aShoot(), nil))
	checkErrors(t, validateShootForSeed(managed("a", ""), nil, nil), "spec.shoot.name Not found")
	checkErrors(t, validateShootForSeed(managed("a", ""), aShoot(),
		[]*seedmanagementv1alpha1.ManagedSeed{managed("b", "")}), `spec.shoot.name is already the seed "b"`)
	checkErrors(t, validateShootForSeed(managed("a", ""), aShoot(workerless), nil), "spec.shoot.name has no workers")
	checkErrors(t, validateShootForSeed(managed("a", ""), asleep, nil), "spec.shoot.name cannot sleep")
	checkErrors(t, validateShootOfManagedSeed(asleep, managed("a", "")),
		`spec.hibernation.enabled seed "a", which cannot sleep`)

	checkErrors(t, validateSeedConfig(managed("a", `{"provider":{"type":"local"},"networks":{"pods":"10.3.0.0/16"}}`),
		aShoot()))
	checkErrors(t, validateSeedConfig(managed("a", `{"provider":{"type":"aws"},"networks":{"pods":"10.9.0.0/16"}}`),
		aShoot()),
		"spec.gardenlet.config.seedConfig.spec.provider.type has local",
		"spec.gardenlet.config.seedConfig.spec.networks.pods has 10.3.0.0/16")
}
