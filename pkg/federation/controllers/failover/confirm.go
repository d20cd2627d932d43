package failover

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
)

// ConfirmEviction marks a Work that is about to be removed because of an eviction, so that it does not count as a
// deletion.
func ConfirmEviction(ctx context.Context, c client.Client, work *workv1alpha1.Work) error {
	if work.Annotations[workv1alpha1.ConfirmDeletionAnnotation] != "" {
		return nil
	}
	before := work.DeepCopy()
	if work.Annotations == nil {
		work.Annotations = map[string]string{}
	}
	work.Annotations[workv1alpha1.ConfirmDeletionAnnotation] = workv1alpha1.ConfirmDeletionEvicted
	if err := c.Patch(ctx, work, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("marking Work %s as evicted: %w", client.ObjectKeyFromObject(work), err)
	}
	return nil
}
