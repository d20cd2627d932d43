package v1beta1

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// expiryNotice is how long before a version expires its users are warned.
const expiryNotice = 30 * 24 * time.Hour

// expiration returns when the version expires; nothing if that is not known.
func (v *ExpirableVersion) expiration() (time.Time, bool) {
	if i := slices.IndexFunc(v.Lifecycle,
		func(stage LifecycleStage) bool { return stage.Classification == ClassificationExpired }); i >= 0 {
		return deref(v.Lifecycle[i].StartTime).Time, true
	}
	return deref(v.ExpirationDate).Time, v.ExpirationDate != nil
}

// ShootExpiryWarnings tells the owner of a Shoot which versions that it uses expire soon, or have expired.
func ShootExpiryWarnings(shoot *Shoot, profile *CloudProfileSpec, now time.Time) []string {
	spec := field.NewPath("spec")
	warnings := expiryWarning(shoot.Spec.Kubernetes.Version, profile.Kubernetes.Versions, now,
		spec.Child("kubernetes", "version"))
	for i := range shoot.Spec.Provider.Workers {
		worker, path := &shoot.Spec.Provider.Workers[i], spec.Child("provider", "workers").Index(i)
		if version := workerVersion(worker); version != shoot.Spec.Kubernetes.Version {
			warnings = append(warnings, expiryWarning(version, profile.Kubernetes.Versions, now,
				path.Child("kubernetes", "version"))...)
		}
		if image := worker.Machine.Image; image != nil {
			offered := profile.VersionsFor(image.Name, worker.Machine.Type, "")
			warnings = append(warnings, expiryWarning(deref(image.Version), offered, now,
				path.Child("machine", "image", "version"))...)
		}
	}
	return warnings
}

func expiryWarning(version string, offered []ExpirableVersion, now time.Time, path *field.Path) []string {
	used := find(offered, func(o ExpirableVersion) bool { return o.Version == version })
	if used == nil {
		return nil
	}
	switch expires, known := used.expiration(); {
	case !known || expires.Sub(now) > expiryNotice:
		return nil
	case expires.After(now):
		return []string{
			fmt.Sprintf("%s: %s expires on %s; update before, or the cluster is updated in its maintenance", path,
				version, expires.UTC().Format(time.DateOnly)),
		}
	default:
		return []string{
			fmt.Sprintf("%s: %s has expired; update now, or the cluster is updated in its next maintenance", path,
				version),
		}
	}
}
