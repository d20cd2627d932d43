package seed

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component/networkpolicies"
)

// restrictNetwork lets the pods of the namespace garden talk to those they need only.
func (s *System) restrictNetwork(ctx context.Context, seed *gardencorev1beta1.Seed) error {
	apiServer, err := networkpolicies.APIServer(ctx, s.Seed)
	if err != nil {
		return err
	}
	exceptions, err := s.Config.Egress.Allowances()
	if err != nil {
		return err
	}
	return networkpolicies.Apply(ctx, s.Seed, gardencorev1beta1.GardenNamespace,
		networkpolicies.Objects(networkpolicies.Garden, gardencorev1beta1.GardenNamespace,
			networkpolicies.Values{
				Networks: seed.Spec.Networks, APIServer: apiServer, Exceptions: exceptions, HighlyAvailable: true,
			}))
}

// APIServer leads the policies of all namespaces to where the seed's API server is: its addresses may change while
// nobody reconciles a shoot. It implements manager.Runnable, and is no controller: gardenlet's manager watches the
// garden, where no object tells of the addresses.
type APIServer struct {
	// Seed is a client of the seed.
	Seed client.Client
	// Period between looks.
	Period time.Duration
	// Log takes failures.
	Log logr.Logger

	followed []networkpolicies.Endpoint
	at       time.Time
}

// followAgain is after how long policies are looked at although the API server has not moved: somebody may have written
// what was true before.
const followAgain = 5 * time.Minute

// Start looks until ctx ends.
func (a *APIServer) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := a.follow(ctx); err != nil && ctx.Err() == nil {
			a.Log.Error(err, "Following the seed's API server failed")
		}
	}, a.Period)
	return nil
}

// follow changes policies when the addresses are others than at the last look, or that is long ago.
func (a *APIServer) follow(ctx context.Context) error {
	endpoints, err := networkpolicies.APIServer(ctx, a.Seed)
	if err != nil || len(endpoints) == 0 || slices.Equal(endpoints, a.followed) && time.Since(a.at) < followAgain {
		return err
	}
	if err := networkpolicies.Follow(ctx, a.Seed, endpoints); err != nil {
		return err
	}
	a.followed, a.at = endpoints, time.Now()
	return nil
}
