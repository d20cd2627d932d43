package admission

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// checkRestore checks a restore of etcd that is newly asked for: what depends on the time and on the seed, and that
// whoever asks knows what is lost.
func (s *shootValidator) checkRestore(ctx context.Context, a admission.Attributes) error {
	shoot, isShoot := a.GetObject().(*gardencorev1beta1.Shoot)
	if !isShoot || a.GetSubresource() != "" {
		return nil
	}
	operation, to, err := gardencorev1beta1.RestoreOperation(shoot)
	if operation == "" || err != nil {
		return nil // or validation has refused it
	}
	old, updated := a.GetOldObject().(*gardencorev1beta1.Shoot)
	if updated && slices.Contains(
		gardencorev1beta1.SplitOperations(old.Annotations[gardencorev1beta1.GardenerOperation]), operation) {
		return nil
	}
	seed, err := get[*gardencorev1beta1.Seed](ctx, s.Reader, gardencorev1beta1.Resource("seeds"), "",
		ptr.Deref(shoot.Spec.SeedName, ""))
	if err != nil && !isMissing(err) {
		return respond(a, nil, err)
	}
	return invalid(a, validateRestore(shoot, seed, operation, to, s.now()))
}

// validateRestore checks a restore; the seed may be nil.
func validateRestore(shoot *gardencorev1beta1.Shoot, seed *gardencorev1beta1.Seed, operation string,
	to, now time.Time) field.ErrorList {
	annotations := field.NewPath("metadata", "annotations")
	path := annotations.Key(gardencorev1beta1.GardenerOperation)
	if to.After(now) {
		return field.ErrorList{field.Invalid(path, operation,
			fmt.Sprintf("names a time in the future: it is %s", now.UTC().Format(time.RFC3339)))}
	}
	if seed == nil || seed.Spec.Backup == nil {
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("is possible where the seed has an object store, in "+
			"its spec.backup; seed %q has none", ptr.Deref(shoot.Spec.SeedName, "")))}
	}
	confirmed, err := time.Parse(time.RFC3339,
		shoot.Annotations[gardencorev1beta1.AnnotationConfirmationRestoreETCD])
	if err == nil && confirmed.Equal(to) {
		return nil
	}
	at := to.UTC().Format(time.RFC3339)
	return field.ErrorList{field.Forbidden(annotations.Key(gardencorev1beta1.AnnotationConfirmationRestoreETCD),
		fmt.Sprintf("%s discards what was written to the cluster's API since %s: the last %s, and up to a period of "+
			"backups before. To confirm that, set this annotation to %s in the same request",
			gardencorev1beta1.ShootOperationRestoreETCD, at, now.Sub(to).Round(time.Second), at))}
}
