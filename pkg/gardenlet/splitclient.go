package gardenlet

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// splitClient reads Shoots from the cache, which holds those of this seed, and everything else from the API server: a
// cache of, say, all Secrets of the garden is neither wanted nor allowed.
type splitClient struct {
	client.Client
	cached client.Client
}

// Get implements client.Reader.
func (c *splitClient) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	opts ...client.GetOption) error {
	if _, ok := object.(*gardencorev1beta1.Shoot); ok {
		return c.cached.Get(ctx, key, object, opts...)
	}
	return c.Client.Get(ctx, key, object, opts...)
}
