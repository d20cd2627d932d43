package component

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/apply"
)

// Scale sets the replicas of a Deployment or StatefulSet and does not wait. The next Deploy sets what its Values say.
func Scale(ctx context.Context, c client.Client, object client.Object, replicas int32) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	if err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("scaling %s to %d: %w", apply.Describe(c.Scheme(), object), replicas, err)
	}
	return nil
}
