package gardenlet

import (
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/watchdog"
)

// probes are how many shoots the watchdog looks at together. It mostly waits then, and some that do not answer must not
// make it late for the others.
const probes = 100

// addWatchdog adds the controllers that look after dependencies, and a cache of the seed for them.
func (a *agent) addWatchdog(mgr manager.Manager) error {
	kept, err := watchdog.Cache()
	if err != nil {
		return err
	}
	watched, err := cluster.New(unthrottled(a.opts.Seed), func(o *cluster.Options) {
		o.Scheme, o.Cache = a.reader.Scheme(), kept
	})
	if err != nil {
		return fmt.Errorf("connecting to the seed: %w", err)
	}
	if err := mgr.Add(watched); err != nil {
		return err
	}
	prober := &watchdog.Prober{
		Garden: mgr.GetClient(), Watched: watched.GetClient(), Seed: a.seed, SeedName: a.config.SeedConfig.Name,
		Events: mgr.GetEventRecorder("gardenlet"),
	}
	err = builder.ControllerManagedBy(mgr).Named("shoot-prober").
		For(&gardencorev1beta1.Shoot{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: probes, RateLimiter: backoff()}).
		Complete(prober)
	if err != nil {
		return err
	}
	weeder := &watchdog.Weeder{Garden: mgr.GetClient(), Seed: a.seed, SeedName: a.config.SeedConfig.Name}
	return builder.ControllerManagedBy(mgr).Named("shoot-weeder").
		WatchesRawSource(source.Kind(watched.GetCache(), &discoveryv1.EndpointSlice{},
			handler.TypedEnqueueRequestsFromMapFunc(weeder.Begin), watchdog.TurnedReady())).
		WithOptions(controller.Options{RateLimiter: backoff()}).
		Complete(weeder)
}
