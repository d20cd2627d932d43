package v1beta1

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var now = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func TestValidateShootAgainstCloudProfile(t *testing.T) {
	const worker = "spec.provider.workers[0]"
	check(t, []change[*Shoot]{
		{"as it is", func(*Shoot) {}, "", ""},
		{
			"other provider", func(s *Shoot) { s.Spec.Provider.Type = "aws" }, "spec.provider.type",
			`supported values: "local"`,
		},
		{
			"unknown version", func(s *Shoot) { s.Spec.Kubernetes.Version = "1.34.0" }, "spec.kubernetes.version",
			`"1.36.3"`,
		},
		{"preview version", func(s *Shoot) { s.Spec.Kubernetes.Version = "1.37.0" }, "", ""},
		{"unknown region", func(s *Shoot) { s.Spec.Region = "eu-west-1" }, "spec.region", `supported values: "local"`},
		{"unknown access restriction", func(s *Shoot) {
			s.Spec.AccessRestrictions = []AccessRestrictionWithOptions{
				{AccessRestriction: AccessRestriction{Name: "eu"}},
			}
		}, "spec.accessRestrictions[0].name", "Unsupported"},
		{
			"unknown machine type", func(s *Shoot) { s.Spec.Provider.Workers[0].Machine.Type = "huge" },
			worker + ".machine.type", `supported values: "small", "arm"`,
		},
		{
			"unusable machine type", func(s *Shoot) { s.Spec.Provider.Workers[0].Machine.Type = "gone" },
			worker + ".machine.type", `supported values: "small", "arm"`,
		},
		{
			"other architecture", func(s *Shoot) { s.Spec.Provider.Workers[0].Machine.Architecture = new("arm64") },
			worker + ".machine.architecture", `"amd64"`,
		},
		{
			"no image", func(s *Shoot) { s.Spec.Provider.Workers[0].Machine.Image = nil }, worker + ".machine.image",
			"name a machine image",
		},
		{
			"unknown image", func(s *Shoot) { s.Spec.Provider.Workers[0].Machine.Image.Name = "windows" },
			worker + ".machine.image.name", `"debian", "old"`,
		},
		{
			"unknown image version", func(s *Shoot) {
				s.Spec.Provider.Workers[0].Machine.Image.Version = new("11.0.0")
			}, worker + ".machine.image.version", `"12.5.0", "12.4.0"`,
		},
		{
			"image for another architecture",
			func(s *Shoot) { s.Spec.Provider.Workers[0].Machine.Image.Version = new("12.6.0") },
			worker + ".machine.image.version", `"12.5.0", "12.4.0"`,
		},
		{"image for older kubelets", func(s *Shoot) {
			s.Spec.Provider.Workers[0].Machine.Image = &ShootMachineImage{Name: "old", Version: new("1.0.0")}
		}, worker + ".machine.image.version", "Unsupported"},
		{
			"unknown zone", func(s *Shoot) { s.Spec.Provider.Workers[0].Zones = []string{"z"} }, worker + ".zones[0]",
			`supported values: "a", "b"`,
		},
		{"no zone", func(s *Shoot) { s.Spec.Provider.Workers[0].Zones = nil }, worker + ".zones", "at least one zone"},
		{
			"zone without such machines", func(s *Shoot) { s.Spec.Provider.Workers[0].Zones = []string{"b"} },
			worker + ".zones[0]", "no machines of type small",
		},
		{
			"unknown volume type", func(s *Shoot) { s.Spec.Provider.Workers[0].Volume = &Volume{Type: new("tape")} },
			worker + ".volume.type", `"ssd"`,
		},
		{
			"unknown kubelet version", func(s *Shoot) {
				s.Spec.Provider.Workers[0].Kubernetes = &WorkerKubernetes{Version: new("1.34.0")}
			}, worker + ".kubernetes.version", `"1.35.4"`,
		},
		{
			"too many machines", func(s *Shoot) { s.Spec.Provider.Workers[0].Maximum = 11 }, worker + ".maximum",
			"at most 10",
		},
	}, aShoot, func(s *Shoot) field.ErrorList {
		profile := aProfile()
		profile.Spec.Limits = &Limits{MaxNodesTotal: new(int32(10))}
		return ValidateShootAgainstCloudProfile(s, nil, &profile.Spec, now)
	})
}

func TestVolumesAndZonesOfProfile(t *testing.T) {
	const worker = "spec.provider.workers[0]"
	profile := aProfile()
	profile.Spec.VolumeTypes = []VolumeType{
		{Name: "ssd", Class: "premium", MinSize: new(resource.MustParse("20Gi"))},
		{Name: "tape", Class: "standard", Usable: new(false)},
	}
	profile.Spec.MachineTypes[0].Storage = &MachineTypeStorage{
		Class: "premium", Type: "ssd", MinSize: new(resource.MustParse("50Gi")),
	}
	profile.Spec.Regions[0].Zones[0].UnavailableVolumeTypes = []string{"lto"}
	profile.Spec.VolumeTypes = append(profile.Spec.VolumeTypes, VolumeType{Name: "lto", Class: "standard"})
	against := func(old *Shoot) func(*Shoot) field.ErrorList {
		return func(s *Shoot) field.ErrorList { return ValidateShootAgainstCloudProfile(s, old, &profile.Spec, now) }
	}
	root := func(volumeType, size string) func(*Shoot) {
		return func(s *Shoot) { s.Spec.Provider.Workers[0].Volume = &Volume{Type: &volumeType, VolumeSize: size} }
	}
	data := func(volumeType, size string) func(*Shoot) {
		return func(s *Shoot) {
			root("ssd", "50Gi")(s)
			s.Spec.Provider.Workers[0].DataVolumes = []DataVolume{{Name: "data", Type: &volumeType, VolumeSize: size}}
		}
	}
	pinned := func(s *Shoot) { s.Spec.ControlPlane = &ControlPlane{Zones: []string{"a"}} }
	check(t, []change[*Shoot]{
		{"large enough", root("ssd", "50Gi"), "", ""},
		{"too small for the machine type", root("ssd", "49Gi"), worker + ".volume.size", "at least 50Gi"},
		{"data large enough", data("ssd", "20Gi"), "", ""},
		{"data too small", data("ssd", "19Gi"), worker + ".dataVolumes[0].size", "at least 20Gi"},
		{"data of a type that nobody may choose", data("tape", "20Gi"), worker + ".dataVolumes[0].type", `"ssd"`},
		{"data of a type that the zone lacks", data("lto", "20Gi"), worker + ".zones[0]", "no volumes of type lto"},
		{"zones of the control plane", pinned, "spec.controlPlane.zones", "allowZonePinning"},
	}, aShoot, against(nil))
	before := aShoot()
	root("ssd", "10Gi")(before)
	pinned(before)
	expectError(t, against(before)(before.DeepCopy()), "", "")
	profile.Spec.ControlPlane = &CloudProfileControlPlane{AllowZonePinning: new(true)}
	check(t, []change[*Shoot]{{"zones of the control plane, allowed", pinned, "", ""}}, aShoot, against(nil))
}

// What a cluster has may go on being used when the profile no longer offers it, but not be chosen anew.
func TestExpiredVersionsStay(t *testing.T) {
	profile := aProfile()
	expired := metav1.NewTime(now.Add(-time.Hour))
	profile.Spec.Kubernetes.Versions[0].ExpirationDate = &expired
	profile.Spec.MachineImages[0].Versions[0].ExpirationDate = &expired
	shoot := aShoot()
	expectError(t, ValidateShootAgainstCloudProfile(shoot, shoot.DeepCopy(), &profile.Spec, now), "", "")
	if errs := ValidateShootAgainstCloudProfile(shoot, nil, &profile.Spec, now); len(errs) != 2 {
		t.Errorf("a new cluster gets %v", errs)
	}
}

func TestDefaultShootFromCloudProfile(t *testing.T) {
	for name, test := range map[string]struct {
		given       string
		old         string
		want        string
		refusedWith string
	}{
		"nothing":                        {"", "", "1.36.3", ""},
		"major version":                  {"1", "", "1.36.3", ""},
		"minor version":                  {"1.35", "", "1.35.4", ""},
		"full version":                   {"1.36.2", "", "1.36.2", ""},
		"unknown full version":           {"1.20.0", "", "1.20.0", ""},
		"minor version without patch":    {"1.3", "", "1.3", `"1.36.3"`},
		"preview version":                {"1.37", "", "1.37", `"1.36.3"`},
		"nothing, with a version before": {"", "1.35.4", "1.35.4", ""},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := aShoot()
			shoot.Spec.Kubernetes.Version = test.given
			var old *Shoot
			if test.old != "" {
				old = aShoot()
				old.Spec.Kubernetes.Version = test.old
			}
			errs := DefaultShootFromCloudProfile(shoot, old, &aProfile().Spec, now)
			path := ""
			if test.refusedWith != "" {
				path = "spec.kubernetes.version"
			}
			expectError(t, errs, path, test.refusedWith)
			if shoot.Spec.Kubernetes.Version != test.want {
				t.Errorf("got version %q, want %q", shoot.Spec.Kubernetes.Version, test.want)
			}
		})
	}
}

func TestDefaultMachineImage(t *testing.T) {
	for name, test := range map[string]struct {
		machine string
		image   *ShootMachineImage
		old     *ShootMachineImage
		want    string
	}{
		"nothing":                         {"small", nil, nil, "debian 12.5.0"},
		"image without version":           {"small", &ShootMachineImage{Name: "debian"}, nil, "debian 12.5.0"},
		"machine of another architecture": {"arm", nil, nil, "debian 12.6.0"},
		"image with version": {
			"small", &ShootMachineImage{Name: "debian", Version: new("12.4.0")}, nil, "debian 12.4.0",
		},
		"unknown image": {"small", &ShootMachineImage{Name: "x"}, nil, "x "},
		"image of before": {
			"small", nil, &ShootMachineImage{Name: "debian", Version: new("12.4.0")}, "debian 12.4.0",
		},
		"version of before": {
			"small", &ShootMachineImage{Name: "debian"}, &ShootMachineImage{Name: "debian", Version: new("12.4.0")},
			"debian 12.4.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := aShoot()
			shoot.Spec.Provider.Workers[0].Machine = Machine{Type: test.machine, Image: test.image}
			var old *Shoot
			if test.old != nil {
				old = shoot.DeepCopy()
				old.Spec.Provider.Workers[0].Machine.Image = test.old
			}
			expectError(t, DefaultShootFromCloudProfile(shoot, old, &aProfile().Spec, now), "", "")
			image := shoot.Spec.Provider.Workers[0].Machine.Image
			if got := image.Name + " " + deref(image.Version); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// What is filled in from a profile is on offer there.
func TestDefaultsAreOnOffer(t *testing.T) {
	shoot := aShoot()
	shoot.Spec.Kubernetes.Version = ""
	shoot.Spec.Provider.Workers[0].Machine.Image = nil
	profile := aProfile()
	expectError(t, DefaultShootFromCloudProfile(shoot, nil, &profile.Spec, now), "", "")
	expectError(t, ValidateShootAgainstCloudProfile(shoot, nil, &profile.Spec, now), "", "")
	if got := deref(shoot.Spec.Provider.Workers[0].Machine.Architecture); got != "amd64" {
		t.Errorf("architecture is %q", got)
	}
}

func TestClassificationAt(t *testing.T) {
	at := func(hours time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(hours * time.Hour)} }
	for name, test := range map[string]struct {
		version ExpirableVersion
		want    VersionClassification
	}{
		"nothing said": {ExpirableVersion{}, ClassificationSupported},
		"classified":   {ExpirableVersion{Classification: new(ClassificationPreview)}, ClassificationPreview},
		"expires later": {
			ExpirableVersion{Classification: new(ClassificationDeprecated), ExpirationDate: at(1)},
			ClassificationDeprecated,
		},
		"expires now": {
			ExpirableVersion{Classification: new(ClassificationDeprecated), ExpirationDate: at(0)},
			ClassificationExpired,
		},
		"before a stage": {
			ExpirableVersion{Lifecycle: []LifecycleStage{{ClassificationPreview, at(1)}}}, ClassificationUnavailable,
		},
		"between stages": {
			ExpirableVersion{
				Lifecycle: []LifecycleStage{
					{ClassificationPreview, nil}, {ClassificationSupported, at(-1)}, {ClassificationExpired, at(1)},
				},
			}, ClassificationSupported,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.version.ClassificationAt(now); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Capabilities decide which image a machine boots: a flavor has to share a value with the machine in every capability
// both name.
func TestImageFlavors(t *testing.T) {
	version := MachineImageVersion{CapabilityFlavors: []MachineImageFlavor{
		{Capabilities: Capabilities{"architecture": {"amd64"}, "hypervisor": {"kvm"}}},
		{Capabilities: Capabilities{"architecture": {"arm64"}}},
	}}
	for name, test := range map[string]struct {
		machine MachineType
		want    bool
	}{
		"plain machine": {MachineType{}, true},
		"fitting hypervisor": {
			MachineType{Capabilities: Capabilities{"architecture": {"amd64"}, "hypervisor": {"xen", "kvm"}}}, true,
		},
		"other hypervisor": {
			MachineType{Capabilities: Capabilities{"architecture": {"amd64"}, "hypervisor": {"xen"}}}, false,
		},
		"any hypervisor on arm": {
			MachineType{Capabilities: Capabilities{"architecture": {"arm64"}, "hypervisor": {"xen"}}}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := version.runsOn(&test.machine); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
