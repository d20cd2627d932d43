package shoot

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AdminConfig returns administrative access to the API server of the shoot whose control plane lies in a namespace of the seed, over
// the network of the seed.
func AdminConfig(ctx context.Context, seed client.Reader, namespace string) (*rest.Config, error) {
	return shootConfig(ctx, seed, namespace)
}
