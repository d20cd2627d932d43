// Package cloudprofile tells in the status of cloud profiles where each version is in its life, so that who reads it
// need not compare dates.
package cloudprofile

import (
	"context"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Reconciler writes the status of cloud profiles.
type Reconciler struct {
	Client client.Client
	Now    func() time.Time
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("cloudprofile").
		For(&gardencorev1beta1.CloudProfile{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// Reconcile writes the status of one profile, and comes back when a version enters another stage of its life.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	profile := &gardencorev1beta1.CloudProfile{}
	if err := r.Client.Get(ctx, request.NamespacedName, profile); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := r.Now()
	before := profile.DeepCopy()
	profile.Status = Status(&profile.Spec, now)
	if !apiequality.Semantic.DeepEqual(before.Status, profile.Status) {
		if err := r.Client.Status().Patch(ctx, profile, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("status of cloud profile %s: %w", profile.Name, err)
		}
	}
	next := nextStage(&profile.Spec, now)
	if next.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: next.Sub(now)}, nil
}

// Status returns where the versions of a profile are in their lives at a time.
func Status(spec *gardencorev1beta1.CloudProfileSpec, now time.Time) gardencorev1beta1.CloudProfileStatus {
	status := gardencorev1beta1.CloudProfileStatus{}
	if versions := classify(spec.Kubernetes.Versions, now); len(versions) > 0 {
		status.Kubernetes = &gardencorev1beta1.KubernetesStatus{Versions: versions}
	}
	for i := range spec.MachineImages {
		status.MachineImages = append(status.MachineImages, gardencorev1beta1.MachineImageStatus{
			Name: spec.MachineImages[i].Name, Versions: classify(lives(&spec.MachineImages[i]), now),
		})
	}
	return status
}

func classify(versions []gardencorev1beta1.ExpirableVersion, now time.Time) []gardencorev1beta1.ExpirableVersionStatus {
	var result []gardencorev1beta1.ExpirableVersionStatus
	for i := range versions {
		result = append(result, gardencorev1beta1.ExpirableVersionStatus{
			Version: versions[i].Version, Classification: versions[i].ClassificationAt(now),
		})
	}
	return result
}

// lives returns the life cycles of an image's versions.
func lives(image *gardencorev1beta1.MachineImage) []gardencorev1beta1.ExpirableVersion {
	var result []gardencorev1beta1.ExpirableVersion
	for _, version := range image.Versions {
		result = append(result, gardencorev1beta1.ExpirableVersion{
			Version: version.Version, ExpirationDate: version.ExpirationDate, Classification: version.Classification,
			Lifecycle: version.Lifecycle,
		})
	}
	return result
}

// nextStage returns when the first version enters another stage after a time; the zero time when none does.
func nextStage(spec *gardencorev1beta1.CloudProfileSpec, now time.Time) time.Time {
	var next time.Time
	consider := func(at time.Time) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	versions := spec.Kubernetes.Versions
	for i := range spec.MachineImages {
		versions = append(versions[:len(versions):len(versions)], lives(&spec.MachineImages[i])...)
	}
	for _, version := range versions {
		if version.ExpirationDate != nil {
			consider(version.ExpirationDate.Time)
		}
		for _, stage := range version.Lifecycle {
			if stage.StartTime != nil {
				consider(stage.StartTime.Time)
			}
		}
	}
	return next
}
