package maintenance

import (
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// offer is what versions there are to choose from.
type offer []candidate

type candidate struct {
	*semver.Version
	classification gardencorev1beta1.VersionClassification
}

// newOffer sorts versions from old to new. Versions that are no semantic ones are left out; validation refuses them.
func newOffer(versions []gardencorev1beta1.ExpirableVersion, now time.Time) offer {
	var result offer
	for i := range versions {
		parsed, err := semver.NewVersion(versions[i].Version)
		if err == nil {
			result = append(result, candidate{Version: parsed, classification: versions[i].ClassificationAt(now)})
		}
	}
	slices.SortFunc(result, func(a, b candidate) int { return a.Compare(b.Version) })
	return result
}

// expired tells whether a version must not be used any longer. One that is no longer offered counts as expired.
func (o offer) expired(version *semver.Version) bool {
	for _, candidate := range o {
		if candidate.Equal(version) {
			return candidate.classification == gardencorev1beta1.ClassificationExpired
		}
	}
	return true
}

// newest returns the newest version that fits: a supported one, else a deprecated one. Others are never chosen.
func (o offer) newest(fits func(*semver.Version) bool) *semver.Version {
	for _, wanted := range []gardencorev1beta1.VersionClassification{
		gardencorev1beta1.ClassificationSupported, gardencorev1beta1.ClassificationDeprecated,
	} {
		if version := o.newestOf(wanted, fits); version != nil {
			return version
		}
	}
	return nil
}

func (o offer) newestOf(wanted gardencorev1beta1.VersionClassification,
	fits func(*semver.Version) bool) *semver.Version {
	for _, candidate := range slices.Backward(o) {
		if candidate.classification == wanted && fits(candidate.Version) {
			return candidate.Version
		}
	}
	return nil
}

// kubernetesUpdate returns the version to go to from the given one; nil to stay. By itself an update stays in the minor
// version. When that has nothing left and the version has expired, it goes to the next minor version, even if there are
// only expired ones: further steps follow in later maintenances. No update goes beyond the limit, when there is one.
func kubernetesUpdate(current *semver.Version, o offer, auto bool, limit *semver.Version) *semver.Version {
	expired := o.expired(current)
	if !auto && !expired {
		return nil
	}
	within := func(version *semver.Version) bool { return limit == nil || !version.GreaterThan(limit) }
	patch := func(version *semver.Version) bool {
		return sameMinor(version, current) && version.GreaterThan(current) && within(version)
	}
	if version := o.newest(patch); version != nil || !expired {
		return version
	}
	next := func(version *semver.Version) bool {
		return version.Major() == current.Major() && version.Minor() == current.Minor()+1 && within(version)
	}
	if version := o.newest(next); version != nil {
		return version
	}
	return o.newestOf(gardencorev1beta1.ClassificationExpired, next)
}

// imageUpdate returns the version of a machine image to go to from the given one; nil to stay. An update goes as far as
// the strategy lets it. When that has nothing left and the version has expired, it goes on to the next minor or major
// version.
func imageUpdate(current *semver.Version, o offer, auto bool,
	strategy gardencorev1beta1.MachineImageUpdateStrategy) *semver.Version {
	expired := o.expired(current)
	if !auto && !expired {
		return nil
	}
	within := func(version *semver.Version) bool {
		switch strategy {
		case gardencorev1beta1.UpdateStrategyPatch:
			return sameMinor(version, current)
		case gardencorev1beta1.UpdateStrategyMinor:
			return version.Major() == current.Major()
		}
		return true
	}
	newer := func(version *semver.Version) bool { return version.GreaterThan(current) }
	version := o.newest(func(version *semver.Version) bool { return newer(version) && within(version) })
	if version != nil || !expired {
		return version
	}
	for _, next := range o {
		usable := next.classification == gardencorev1beta1.ClassificationSupported ||
			next.classification == gardencorev1beta1.ClassificationDeprecated
		if usable && newer(next.Version) {
			return o.newest(func(version *semver.Version) bool {
				return sameMinor(version, next.Version) && newer(version)
			})
		}
	}
	return nil
}

func sameMinor(a, b *semver.Version) bool { return a.Major() == b.Major() && a.Minor() == b.Minor() }
