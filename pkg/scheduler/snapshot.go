package scheduler

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// obstacle is what keeps a shoot from being scheduled to any seed at all, said to its user. It goes away by a change of
// the garden, not by another attempt.
type obstacle struct{ message string }

func (o *obstacle) Error() string { return o.message }

func obstaclef(format string, arguments ...any) error {
	return &obstacle{message: fmt.Sprintf(format, arguments...)}
}

// snapshot reads what the decision about a shoot rests on. The seeds in it are those of the cache.
func (r *Reconciler) snapshot(ctx context.Context, shoot *gardencorev1beta1.Shoot) (Snapshot, error) {
	seeds := &gardencorev1beta1.SeedList{}
	if err := r.Client.List(ctx, seeds, client.UnsafeDisableDeepCopy); err != nil {
		return Snapshot{}, fmt.Errorf("listing seeds: %w", err)
	}
	snapshot := Snapshot{Strategy: r.Strategy, Used: r.usage.counts()}
	for i := range seeds.Items {
		snapshot.Seeds = append(snapshot.Seeds, &seeds.Items[i])
	}
	profile, err := r.profile(ctx, shoot)
	if err != nil {
		return Snapshot{}, err
	}
	snapshot.Profile = profile.spec
	if snapshot.ExposureClass, err = r.exposureClass(ctx, shoot); err != nil {
		return Snapshot{}, err
	}
	if snapshot.Strategy == MinimalDistance {
		snapshot.Distances, err = r.distances(ctx, profile.name, shoot.Spec.Region)
	}
	return snapshot, err
}

// cloudProfile is the cloud profile of a shoot.
type cloudProfile struct {
	// name is that of the operators' profile, also when the shoot uses a project's variant of it.
	name string
	spec *gardencorev1beta1.CloudProfileSpec
}

func (r *Reconciler) profile(ctx context.Context, shoot *gardencorev1beta1.Shoot) (cloudProfile, error) {
	reference := profileReference(shoot)
	if reference == nil {
		return cloudProfile{}, nil
	}
	if reference.Kind == gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile {
		return r.namespacedProfile(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: reference.Name})
	}
	profile := &gardencorev1beta1.CloudProfile{}
	if err := r.require(ctx, client.ObjectKey{Name: reference.Name}, profile, "CloudProfile"); err != nil {
		return cloudProfile{}, err
	}
	return cloudProfile{name: profile.Name, spec: &profile.Spec}, nil
}

// profileReference returns the reference to the cloud profile in either of its forms.
func profileReference(shoot *gardencorev1beta1.Shoot) *gardencorev1beta1.CloudProfileReference {
	if shoot.Spec.CloudProfile == nil && shoot.Spec.CloudProfileName != nil {
		return &gardencorev1beta1.CloudProfileReference{Name: *shoot.Spec.CloudProfileName}
	}
	return shoot.Spec.CloudProfile
}

func (r *Reconciler) namespacedProfile(ctx context.Context, key client.ObjectKey) (cloudProfile, error) {
	profile := &gardencorev1beta1.NamespacedCloudProfile{}
	if err := r.require(ctx, key, profile, "NamespacedCloudProfile"); err != nil {
		return cloudProfile{}, err
	}
	if profile.Status.CloudProfileSpec == nil {
		return cloudProfile{}, obstaclef("NamespacedCloudProfile %s has not been merged with its parent %s yet.", key,
			profile.Spec.Parent.Name)
	}
	return cloudProfile{name: profile.Spec.Parent.Name, spec: profile.Status.CloudProfileSpec}, nil
}

func (r *Reconciler) exposureClass(ctx context.Context,
	shoot *gardencorev1beta1.Shoot) (*gardencorev1beta1.ExposureClass, error) {
	name := shoot.Spec.ExposureClassName
	if name == nil {
		return nil, nil
	}
	class := &gardencorev1beta1.ExposureClass{}
	return class, r.require(ctx, client.ObjectKey{Name: *name}, class, "ExposureClass")
}

// require reads an object without which the shoot cannot be scheduled.
func (r *Reconciler) require(ctx context.Context, key client.ObjectKey, into client.Object, kind string) error {
	err := r.Client.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return obstaclef("%s %s, which the shoot refers to, does not exist.", kind, displayName(key))
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", kind, displayName(key), err)
	}
	return nil
}

func displayName(key client.ObjectKey) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.String()
}

func (r *Reconciler) distances(ctx context.Context, profile, region string) (map[string]int, error) {
	list := &corev1.ConfigMapList{}
	err := r.Client.List(ctx, list, client.InNamespace(gardencorev1beta1.GardenNamespace),
		client.MatchingLabels{LabelPurpose: PurposeRegionConfig})
	if err != nil {
		return nil, fmt.Errorf("listing distances between regions: %w", err)
	}
	distances, err := RegionDistances(list.Items, profile, region)
	if err != nil {
		return nil, obstaclef("Distances between regions cannot be read: %v.", err)
	}
	return distances, nil
}
