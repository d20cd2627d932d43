package maintenance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Why something is updated, as status.lastMaintenance tells it.
const (
	reasonAutomatic = "automatic update"
	reasonExpired   = "version expired"
)

// Update brings the versions of a shoot to what the cloud profile offers and the shoot allows. It returns what it
// changed, for humans, and what should have been updated but cannot be. What a new version does not have any more is
// dropped, as forced updates must not wait for anybody.
func Update(shoot *gardencorev1beta1.Shoot, profile *gardencorev1beta1.CloudProfileSpec,
	now time.Time) (changes, failures []string) {
	u := &updater{shoot: shoot, profile: profile, now: now, auto: automatic(shoot)}
	u.kubernetes()
	for i := range shoot.Spec.Provider.Workers {
		u.workerKubernetes(&shoot.Spec.Provider.Workers[i])
		u.machineImage(&shoot.Spec.Provider.Workers[i])
	}
	if len(u.changes) > 0 {
		u.changes = append(u.changes, gardencorev1beta1.AdaptToKubernetesVersion(&shoot.Spec)...)
	}
	return u.changes, u.failures
}

// automatic returns what a shoot wants to have updated; everything unless it says otherwise.
func automatic(shoot *gardencorev1beta1.Shoot) gardencorev1beta1.MaintenanceAutoUpdate {
	if shoot.Spec.Maintenance == nil || shoot.Spec.Maintenance.AutoUpdate == nil {
		return gardencorev1beta1.MaintenanceAutoUpdate{KubernetesVersion: true, MachineImageVersion: new(true)}
	}
	return *shoot.Spec.Maintenance.AutoUpdate
}

type updater struct {
	shoot             *gardencorev1beta1.Shoot
	profile           *gardencorev1beta1.CloudProfileSpec
	now               time.Time
	auto              gardencorev1beta1.MaintenanceAutoUpdate
	changes, failures []string
}

// report notes a change of what from one version to another; of a version that should change but cannot, to is nil.
func (u *updater) report(what string, from, to *semver.Version, expired bool) {
	switch {
	case to != nil && expired:
		u.changes = append(u.changes, fmt.Sprintf("%s updated from %s to %s: %s", what, from, to, reasonExpired))
	case to != nil:
		u.changes = append(u.changes, fmt.Sprintf("%s updated from %s to %s: %s", what, from, to, reasonAutomatic))
	case expired:
		u.failures = append(u.failures,
			fmt.Sprintf("%s %s has expired and the cloud profile offers no version to update to", what, from))
	}
}

func (u *updater) kubernetes() {
	current, err := semver.NewVersion(u.shoot.Spec.Kubernetes.Version)
	if err != nil {
		return
	}
	versions := newOffer(u.profile.Kubernetes.Versions, u.now)
	to := kubernetesUpdate(current, versions, u.auto.KubernetesVersion, nil)
	if u.waitsInPlace("Kubernetes", current, to) {
		return
	}
	u.report("Kubernetes", current, to, versions.expired(current))
	if to != nil {
		u.shoot.Spec.Kubernetes.Version = to.String()
	}
}

// workerKubernetes updates the version of a pool that has one of its own, never beyond the control plane's.
func (u *updater) workerKubernetes(worker *gardencorev1beta1.Worker) {
	if worker.Kubernetes == nil || worker.Kubernetes.Version == nil {
		return
	}
	current, err := semver.NewVersion(*worker.Kubernetes.Version)
	controlPlane, errControlPlane := semver.NewVersion(u.shoot.Spec.Kubernetes.Version)
	if err != nil || errControlPlane != nil {
		return
	}
	versions := newOffer(u.profile.Kubernetes.Versions, u.now)
	to := kubernetesUpdate(current, versions, u.auto.KubernetesVersion, controlPlane)
	if u.waitsInPlace(fmt.Sprintf("Kubernetes of worker pool %q", worker.Name), current, to) {
		return
	}
	u.report(fmt.Sprintf("Kubernetes of worker pool %q", worker.Name), current, to, versions.expired(current))
	if to != nil {
		worker.Kubernetes.Version = new(to.String())
	}
}

func (u *updater) machineImage(worker *gardencorev1beta1.Worker) {
	image := worker.Machine.Image
	if image == nil || image.Version == nil {
		return
	}
	current, err := semver.NewVersion(*image.Version)
	if err != nil {
		return
	}
	kubelet := u.shoot.Spec.Kubernetes.Version
	if worker.Kubernetes != nil && worker.Kubernetes.Version != nil {
		kubelet = *worker.Kubernetes.Version
	}
	versions := newOffer(u.profile.VersionsFor(image.Name, worker.Machine.Type, kubelet), u.now)
	to := imageUpdate(current, reachable(worker, versions, current),
		ptr.Deref(u.auto.MachineImageVersion, true), u.strategy(image.Name))
	u.report(fmt.Sprintf("Machine image %q of worker pool %q", image.Name, worker.Name), current, to,
		versions.expired(current))
	if to != nil {
		image.Version = new(to.Original())
	}
}

// strategy is how far updates of an image go.
func (u *updater) strategy(image string) gardencorev1beta1.MachineImageUpdateStrategy {
	for _, offered := range u.profile.MachineImages {
		if offered.Name == image && offered.UpdateStrategy != nil {
			return *offered.UpdateStrategy
		}
	}
	return gardencorev1beta1.UpdateStrategyMajor
}

// reachable leaves out what machines that are updated in place cannot go to: no operating system is.
func reachable(worker *gardencorev1beta1.Worker, versions offer, current *semver.Version) offer {
	if !gardencorev1beta1.IsUpdatedInPlace(worker) {
		return versions
	}
	return slices.DeleteFunc(slices.Clone(versions),
		func(candidate candidate) bool { return !candidate.Equal(current) })
}

// waitsInPlace says whether machines wait for an update in place: until they have had it the version stays.
func (u *updater) waitsInPlace(what string, from, to *semver.Version) bool {
	updates := u.shoot.Status.InPlaceUpdates
	if to == nil || updates == nil || updates.PendingWorkerUpdates == nil {
		return false
	}
	u.failures = append(u.failures, fmt.Sprintf("%s %s is not updated to %s while worker pools (%s) wait for in-place "+
		"updates", what, from, to, strings.Join(slices.Concat(updates.PendingWorkerUpdates.AutoInPlaceUpdate,
		updates.PendingWorkerUpdates.ManualInPlaceUpdate), ", ")))
	return true
}
