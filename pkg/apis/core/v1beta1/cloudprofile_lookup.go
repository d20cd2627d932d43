package v1beta1

import (
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

const defaultArchitecture = "amd64"

// ClassificationAt tells where the version is in its life at a time.
func (v *ExpirableVersion) ClassificationAt(now time.Time) VersionClassification {
	if len(v.Lifecycle) > 0 {
		current := ClassificationUnavailable
		for _, stage := range v.Lifecycle {
			if stage.StartTime == nil || !stage.StartTime.After(now) {
				current = stage.Classification
			}
		}
		return current
	}
	if v.ExpirationDate != nil && !v.ExpirationDate.After(now) {
		return ClassificationExpired
	}
	if v.Classification != nil {
		return *v.Classification
	}
	return ClassificationSupported
}

// usable tells whether somebody may ask for the version.
func (v *ExpirableVersion) usable(now time.Time) bool {
	classification := v.ClassificationAt(now)
	return classification != ClassificationExpired && classification != ClassificationUnavailable
}

// usableVersions returns what somebody may ask for.
func usableVersions(versions []ExpirableVersion, now time.Time) []string {
	var usable []string
	for i := range versions {
		if versions[i].usable(now) {
			usable = append(usable, versions[i].Version)
		}
	}
	return usable
}

// newestSupported returns the newest supported version that begins as wanted, and whether there is one.
func newestSupported(versions []ExpirableVersion, wanted string, now time.Time) (string, bool) {
	newest := ""
	for i := range versions {
		candidate := versions[i].Version
		if versions[i].ClassificationAt(now) == ClassificationSupported && beginsAs(candidate, wanted) &&
			(newest == "" || compareVersions(candidate, newest) > 0) {
			newest = candidate
		}
	}
	return newest, newest != ""
}

// beginsAs tells whether a version has all the numbers that are wanted: 1.36.3 begins as 1.36 and as 1, but not as 1.3.
func beginsAs(version, wanted string) bool {
	return wanted == "" || version == wanted || strings.HasPrefix(version, wanted+".")
}

func (s *CloudProfileSpec) machineImage(name string) *MachineImage {
	return find(s.MachineImages, func(image MachineImage) bool { return image.Name == name })
}

func (s *CloudProfileSpec) machineType(name string) *MachineType {
	return find(s.MachineTypes, func(machine MachineType) bool { return machine.Name == name })
}

func (s *CloudProfileSpec) region(name string) *Region {
	return find(s.Regions, func(region Region) bool { return region.Name == name })
}

func find[T any](items []T, matches func(T) bool) *T {
	if i := slices.IndexFunc(items, matches); i >= 0 {
		return &items[i]
	}
	return nil
}

// capabilitiesOf returns the capabilities of a machine type; of one without any, its architecture.
func (t *MachineType) capabilitiesOf() Capabilities {
	if len(t.Capabilities) > 0 {
		return t.Capabilities
	}
	architecture := deref(t.Architecture)
	if architecture == "" {
		architecture = defaultArchitecture
	}
	return Capabilities{capabilityArchitecture: {architecture}}
}

// architectureOf returns the architecture of a machine type.
func (t *MachineType) architectureOf() string {
	if values := t.capabilitiesOf()[capabilityArchitecture]; len(values) > 0 {
		return values[0]
	}
	return defaultArchitecture
}

// runsOn tells whether machines of a type can boot the image version: whether, for one of its flavors, each capability
// that both name has a value in common.
func (v *MachineImageVersion) runsOn(machine *MachineType) bool {
	capabilities := machine.capabilitiesOf()
	return slices.ContainsFunc(v.flavors(), func(flavor MachineImageFlavor) bool {
		for name, values := range capabilities {
			if offered := flavor.Capabilities[name]; len(offered) > 0 &&
				!slices.ContainsFunc(values, func(value string) bool { return slices.Contains(offered, value) }) {
				return false
			}
		}
		return true
	})
}

// flavors returns the combinations of capabilities in which the version exists; without any, one per its architectures.
func (v *MachineImageVersion) flavors() []MachineImageFlavor {
	if len(v.CapabilityFlavors) > 0 {
		return v.CapabilityFlavors
	}
	architectures := v.Architectures
	if len(architectures) == 0 {
		architectures = []string{defaultArchitecture}
	}
	return []MachineImageFlavor{{Capabilities: Capabilities{capabilityArchitecture: architectures}}}
}

// takesKubelet tells whether a kubelet of the version runs on the image version.
func (v *MachineImageVersion) takesKubelet(version string) bool {
	if v.KubeletVersionConstraint == nil {
		return true
	}
	constraint, err := semver.NewConstraint(*v.KubeletVersionConstraint)
	if err != nil {
		return true
	}
	parsed, err := semver.NewVersion(version)
	return err != nil || constraint.Check(parsed)
}

// versionsFor returns the versions of the image that a worker of the type and with a kubelet of the version can use.
func (i *MachineImage) versionsFor(machine *MachineType, kubelet string) []ExpirableVersion {
	var versions []ExpirableVersion
	for j := range i.Versions {
		if version := &i.Versions[j]; (machine == nil || version.runsOn(machine)) && version.takesKubelet(kubelet) {
			versions = append(versions, version.ExpirableVersion)
		}
	}
	return versions
}
