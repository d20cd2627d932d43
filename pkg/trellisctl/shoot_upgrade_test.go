package trellisctl

import (
	"bytes"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func expirable(version string, state gardencorev1beta1.VersionClassification) gardencorev1beta1.ExpirableVersion {
	return gardencorev1beta1.ExpirableVersion{Version: version, Classification: &state}
}

// offering is a cloud profile with several versions of everything.
func offering() *gardencorev1beta1.CloudProfileSpec {
	const (
		supported  = gardencorev1beta1.ClassificationSupported
		preview    = gardencorev1beta1.ClassificationPreview
		deprecated = gardencorev1beta1.ClassificationDeprecated
		expired    = gardencorev1beta1.ClassificationExpired
	)
	image := func(version string, state gardencorev1beta1.VersionClassification) gardencorev1beta1.MachineImageVersion {
		return gardencorev1beta1.MachineImageVersion{ExpirableVersion: expirable(version, state)}
	}
	return &gardencorev1beta1.CloudProfileSpec{
		Type: "local",
		Kubernetes: gardencorev1beta1.KubernetesSettings{Versions: []gardencorev1beta1.ExpirableVersion{
			expirable("1.38.0", supported), expirable("1.35.4", deprecated), expirable("1.36.3", supported),
			expirable("1.36.10", supported), expirable("1.37.1", supported), expirable("1.37.2", preview),
			expirable("1.37.0", expired),
		}},
		MachineTypes: []gardencorev1beta1.MachineType{{Name: "small"}},
		MachineImages: []gardencorev1beta1.MachineImage{{
			Name: "debian", Versions: []gardencorev1beta1.MachineImageVersion{
				image("12.11.0", supported), image("12.9.0", deprecated), image("13.0.0", preview),
			},
		}},
	}
}

func imaged(s *gardencorev1beta1.Shoot) {
	pooled(s)
	for i := range s.Spec.Provider.Workers {
		s.Spec.Provider.Workers[i].Machine = gardencorev1beta1.Machine{
			Type: "small", Image: &gardencorev1beta1.ShootMachineImage{Name: "debian", Version: new("12.9.0")},
		}
	}
}

func TestKubernetesUpgrades(t *testing.T) {
	for wanted, want := range map[string]string{
		"1.36.10": "1.36.10", "1.36": "1.36.10", "1.37": "1.37.1", "1.37.2": "1.37.2",
		"1.38": "spec.kubernetes.version: 1.38.0 skips minor versions; from 1.36.3 first go to the next one: " +
			"trellisctl upgrade shoot one --to 1.37.1 --wait",
		"newest": "skips minor versions", "1.36.3": "the shoot has 1.36.3 already",
		"1.35.4": "1.35.4 is older than 1.36.3, and there is no way back",
		"1.37.0": `"1.37.0" is not offered; choose one of 1.35.4, 1.36.3, 1.36.10, 1.37.1, 1.37.2, 1.38.0`,
		"1.3":    "is not offered", "nonsense": "is not offered",
	} {
		got, err := kubernetesUpgrade(wanted, "1.36.3", offering().Kubernetes.Versions, today, "one")
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", wanted, got, want)
		}
	}
}

func TestUpgrades(t *testing.T) {
	for name, test := range map[string]struct {
		upgrading upgrading
		// want is the version of Kubernetes and the images of both pools, or a part of the error.
		want string
	}{
		"Kubernetes": {upgrading{kubernetes: "1.37"}, "1.37.1 12.9.0 12.9.0"},
		"both":       {upgrading{kubernetes: "1.37", image: "newest"}, "1.37.1 12.11.0 12.11.0"},
		"one pool":   {upgrading{image: "12.11.0", pools: []string{"b"}}, "1.36.3 12.9.0 12.11.0"},
		"a preview":  {upgrading{image: "13.0.0"}, "1.36.3 13.0.0 13.0.0"},
		"the same":   {upgrading{image: "12.9.0"}, "all pools have that image already"},
		"no image":   {upgrading{image: "14"}, `workers[0].machine.image.version: pool a: "14" is not offered`},
		"no pool": {
			upgrading{image: "newest", pools: []string{"c"}},
			"spec.provider.workers: shoot garden-demo/one has no pool",
		},
	} {
		s := with("Succeeded", imaged)
		told, err := test.upgrading.apply(s, offering(), today, "one")
		got := s.Spec.Kubernetes.Version
		for _, worker := range s.Spec.Provider.Workers {
			got += " " + *worker.Machine.Image.Version
		}
		switch {
		case err != nil && !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: got %v", name, err)
		case err == nil && (got != test.want || len(told) == 0):
			t.Errorf("%s: got %s, %v", name, got, told)
		}
	}
}

func TestListingUpgrades(t *testing.T) {
	s := with("Succeeded", imaged)
	s.Spec.Provider.Workers[1].UpdateStrategy = new(gardencorev1beta1.AutoInPlaceUpdate)
	var out bytes.Buffer
	err := printUpgrades(&out, s, offering(), today)
	minor := "the control plane, then pool a: machines are replaced, one after another, then pool b: machines are " +
		"updated in place, one after another"
	check(t, "upgrades", lines(t, &out, err), []string{
		"KUBERNETES STATE REPLACES HOW",
		"1.36.10 supported 1.36.3 the control plane, then the kubelets; machines stay",
		"1.37.1 supported 1.36.3 " + minor, "1.37.2 preview 1.36.3 " + minor,
		"1.38.0 supported 1.36.3 after the minor versions before it", "",
		"POOL IMAGE REPLACES OFFERED HOW",
		"a debian 12.9.0 12.11.0, 13.0.0 machines are replaced, one after another",
		"b debian 12.9.0 12.11.0, 13.0.0 machines are updated in place, one after another",
	})
}

func TestNewestIsNamed(t *testing.T) {
	s := with("Succeeded", func(s *gardencorev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.38.0" })
	var out bytes.Buffer
	err := printUpgrades(&out, s, offering(), today)
	check(t, "upgrades", lines(t, &out, err), []string{"Kubernetes 1.38.0 is the newest version that is offered"})
}
