package fleet

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/apis"
)

// Garden connects to the garden, where the project of a fleet is.
func Garden(config *rest.Config) (client.Client, error) {
	garden, err := client.New(config, client.Options{Scheme: apis.GardenScheme()})
	if err != nil {
		return nil, fmt.Errorf("connecting to the garden: %w", err)
	}
	return garden, nil
}
