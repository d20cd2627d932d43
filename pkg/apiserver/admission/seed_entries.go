package admission

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// makesOtherEntry returns why a seed may not make a BackupEntry; empty when it is that of one of its shoots, in its own
// bucket. An entry lets its seed read the bucket that it names, and what that refers to.
func (s *seedRestriction) makesOtherEntry(ctx context.Context, seed string,
	entry *gardencorev1beta1.BackupEntry) (string, error) {
	if reason := unlessOneOf("spec.seedName", seed, ptr.Deref(entry.Spec.SeedName, "")); reason != "" {
		return reason, nil
	}
	own, err := get[*gardencorev1beta1.Seed](ctx, s.Reader, gardencorev1beta1.Resource("seeds"), "", seed)
	if isMissing(err) {
		return fmt.Sprintf("there is no seed %q", seed), nil
	}
	if err != nil {
		return "", err
	}
	if entry.Spec.BucketName != string(own.UID) {
		return fmt.Sprintf("spec.bucketName is %q, not %q, which is the bucket of the seed", entry.Spec.BucketName,
			own.UID), nil
	}
	return s.notEntryOfShoot(ctx, seed, entry)
}

// notEntryOfShoot returns why an entry is not that of a shoot of the seed.
func (s *seedRestriction) notEntryOfShoot(ctx context.Context, seed string,
	entry *gardencorev1beta1.BackupEntry) (string, error) {
	shoots, err := list[*gardencorev1beta1.Shoot](ctx, s.Reader, gardencorev1beta1.Resource("shoots"), entry.Namespace,
		fields.OneTermEqualSelector("spec.seedName", seed))
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(shoots, func(shoot *gardencorev1beta1.Shoot) bool {
		return entry.Name == gardencorev1beta1.BackupEntryName(shoot.Status.TechnicalID, string(shoot.UID))
	})
	if i < 0 {
		return fmt.Sprintf("metadata.name: no shoot of the seed in namespace %s has the entry %q", entry.Namespace,
			entry.Name), nil
	}
	known := map[string]string{}
	if purpose := shoots[i].Spec.Purpose; purpose != nil {
		known[gardencorev1beta1.AnnotationShootPurpose] = string(*purpose)
	}
	if key, found := firstForeign(entry.Annotations, nil, known); found {
		return fmt.Sprintf("metadata.annotations[%s]: not set by seeds", key), nil
	}
	if key, found := firstForeign(entry.Labels, nil, nil); found {
		return fmt.Sprintf("metadata.labels[%s]: not set by seeds", key), nil
	}
	return "", nil
}
