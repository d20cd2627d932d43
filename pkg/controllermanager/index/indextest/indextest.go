// Package indextest gives tests of controllers a client that has the indexes of garden-controller-manager's cache.
package indextest

import (
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	"github.com/trellis-garden/trellis/pkg/controllermanager/index"
)

// NewClientBuilder returns a builder of clients that know the garden's kinds and the indexes.
func NewClientBuilder() *fake.ClientBuilder {
	builder := fake.NewClientBuilder().WithScheme(apis.GardenScheme())
	for _, one := range index.All() {
		builder = builder.WithIndex(one.Object, one.Name, one.Keys)
	}
	return builder
}
