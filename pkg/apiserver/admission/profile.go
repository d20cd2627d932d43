package admission

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// errNotMerged is returned for a namespaced cloud profile that garden-controller-manager has not completed yet.
var errNotMerged = errors.New("has not been merged with its parent yet: try again in a moment")

// profileOf reads the cloud profile that a shoot refers to. Of a namespaced one it is the merged result.
func profileOf(ctx context.Context, reader Reader,
	shoot *gardencorev1beta1.Shoot) (*gardencorev1beta1.CloudProfileSpec, error) {
	reference := shoot.Spec.CloudProfile
	if reference == nil {
		return nil, nil
	}
	if reference.Kind == gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile {
		profile, err := get[*gardencorev1beta1.NamespacedCloudProfile](ctx, reader,
			gardencorev1beta1.Resource("namespacedcloudprofiles"), shoot.Namespace, reference.Name)
		if err != nil {
			return nil, err
		}
		if profile.Status.CloudProfileSpec == nil {
			return nil, fmt.Errorf("namespaced cloud profile %s/%s %w", shoot.Namespace, reference.Name, errNotMerged)
		}
		return profile.Status.CloudProfileSpec, nil
	}
	profile, err := get[*gardencorev1beta1.CloudProfile](ctx, reader, gardencorev1beta1.Resource("cloudprofiles"), "",
		reference.Name)
	if err != nil {
		return nil, err
	}
	return &profile.Spec, nil
}

// isMissing tells an object that does not exist from an error.
func isMissing(err error) bool { return apierrors.IsNotFound(err) }
