package trellisctl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// newestVersion is what people say for the newest version that is supported.
const newestVersion = "newest"

// versionOffer is a version that somebody may ask for.
type versionOffer struct {
	version string
	parsed  *semver.Version
	state   gardencorev1beta1.VersionClassification
}

// offersOf are the versions that somebody may ask for at a time, the oldest first. What is no version is passed over.
func offersOf(versions []gardencorev1beta1.ExpirableVersion, now time.Time) []versionOffer {
	var offers []versionOffer
	for i := range versions {
		parsed, err := semver.NewVersion(versions[i].Version)
		state := versions[i].ClassificationAt(now)
		if err != nil || state == gardencorev1beta1.ClassificationExpired ||
			state == gardencorev1beta1.ClassificationUnavailable {
			continue
		}
		offers = append(offers, versionOffer{versions[i].Version, parsed, state})
	}
	slices.SortFunc(offers, func(a, b versionOffer) int { return a.parsed.Compare(b.parsed) })
	return offers
}

// laterVersions are the offers that are newer than a version; all of them if that is no version.
func laterVersions(current string, versions []gardencorev1beta1.ExpirableVersion, now time.Time) []versionOffer {
	offers := offersOf(versions, now)
	parsed, err := semver.NewVersion(current)
	if err != nil {
		return offers
	}
	return slices.DeleteFunc(offers, func(offer versionOffer) bool { return !offer.parsed.GreaterThan(parsed) })
}

// newestOffer is the newest supported offer that begins as wanted, and whether there is one.
func newestOffer(offers []versionOffer, wanted string) (string, bool) {
	for _, offer := range slices.Backward(offers) {
		begins := wanted == "" || strings.HasPrefix(offer.version, wanted+".")
		if begins && offer.state == gardencorev1beta1.ClassificationSupported {
			return offer.version, true
		}
	}
	return "", false
}

// chooseVersion is the offer that is wanted: by its full version, or the newest one that begins so.
func chooseVersion(wanted string, offers []versionOffer) (string, error) {
	names := make([]string, len(offers))
	for i, offer := range offers {
		names[i] = oneLine(offer.version)
		if offer.version == wanted {
			return wanted, nil
		}
	}
	beginning := wanted
	if wanted == newestVersion {
		beginning = ""
	}
	if version, ok := newestOffer(offers, beginning); ok {
		return version, nil
	}
	if len(names) == 0 {
		return "", errors.New("the cloud profile offers no version; ask an operator of the garden")
	}
	return "", fmt.Errorf("%q is not offered; choose one of %s", wanted, strings.Join(names, ", "))
}

// alreadyUpdated is the error of an update that a shoot was asked for before.
type alreadyUpdated struct{ what, inCommands string }

func (e alreadyUpdated) Error() string {
	return e.what + "; see what is offered: trellisctl upgrade shoot " + e.inCommands
}

// kubernetesUpgrade is the version that a shoot gets when somebody asks for it. Versions that are older, or skip a
// minor version, are refused, as the garden does.
func kubernetesUpgrade(wanted, current string, versions []gardencorev1beta1.ExpirableVersion, now time.Time,
	inCommands string) (string, error) {
	const path = "spec.kubernetes.version"
	offers := offersOf(versions, now)
	version, err := chooseVersion(wanted, offers)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	target, from := parsedVersion(version), parsedVersion(current)
	switch {
	case from == nil || target == nil:
		return version, nil
	case target.Equal(from):
		return "", alreadyUpdated{fmt.Sprintf("%s: the shoot has %s already", path, version), inCommands}
	case target.LessThan(from):
		return "", fmt.Errorf("%s: %s is older than %s, and there is no way back", path, version, oneLine(current))
	case minorsAhead(current, version) > 1:
		next := fmt.Sprintf("%d.%d", from.Major(), from.Minor()+1)
		if newest, ok := newestOffer(offers, next); ok {
			next = newest
		}
		return "", fmt.Errorf("%s: %s skips minor versions; from %s first go to the next one: trellisctl upgrade "+
			"shoot %s --to %s --wait", path, version, oneLine(current), inCommands, next)
	}
	return version, nil
}

// imageUpgrade is the version of its image that a pool gets when somebody asks for it.
func imageUpgrade(wanted string, versions []gardencorev1beta1.ExpirableVersion, current string,
	now time.Time) (string, error) {
	version, err := chooseVersion(wanted, offersOf(versions, now))
	if err != nil {
		return "", err
	}
	target, from := parsedVersion(version), parsedVersion(current)
	if from != nil && target.LessThan(from) {
		if wanted == newestVersion {
			return current, nil
		}
		return "", fmt.Errorf("%s is older than %s; choose a newer one", version, oneLine(current))
	}
	return version, nil
}

// parsedVersion is nil for what is no version.
func parsedVersion(text string) *semver.Version {
	parsed, err := semver.NewVersion(text)
	if err != nil {
		return nil
	}
	return parsed
}

// minorsAhead is how many minor versions a version is ahead of another one; less than 0 if it is behind, and a large
// number if it is of another major version.
func minorsAhead(from, to string) int {
	a, b := parsedVersion(from), parsedVersion(to)
	switch {
	case a == nil || b == nil:
		return 0
	case a.Major() != b.Major():
		return 1000
	}
	return int(b.Minor()) - int(a.Minor())
}
