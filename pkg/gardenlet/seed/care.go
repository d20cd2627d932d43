package seed

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/conditions"
)

// leaseGrace is how old the Lease may be before gardenlet says that it is not ready.
const leaseGrace = 30 * time.Second

// Care writes the conditions of the Seed that can be told in the seed. It implements manager.Runnable.
type Care struct {
	// Garden is a client of the garden.
	Garden client.Client
	// SeedName is the name of the Seed.
	SeedName string
	// System is what the seed runs, Lease what proves that gardenlet is alive.
	System *System
	Lease  *Lease
	// Period between checks.
	Period time.Duration
	// Log takes failures.
	Log logr.Logger
}

// Start checks until ctx ends; often in the beginning, when everybody waits for the seed.
func (c *Care) Start(ctx context.Context) error {
	for {
		ready, err := c.check(ctx)
		if err != nil && ctx.Err() == nil {
			c.Log.Error(err, "Writing the conditions of the seed failed")
		}
		wait := c.Period
		if !ready {
			wait = min(wait, 2*time.Second)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// check writes the conditions and says whether all are True.
func (c *Care) check(ctx context.Context) (bool, error) {
	seed := &gardencorev1beta1.Seed{}
	if err := c.Garden.Get(ctx, key(c.SeedName), seed); err != nil {
		return false, err
	}
	found := []gardencorev1beta1.Condition{c.gardenletReady(time.Now()), c.System.Health(ctx)}
	before := seed.DeepCopy()
	seed.Status.Conditions = setConditions(seed.Status.Conditions, time.Now(), found...)
	seed.Status.Conditions = withEmergencyStop(seed, time.Now())
	ready := !slices.ContainsFunc(found, func(condition gardencorev1beta1.Condition) bool {
		return condition.Status != gardencorev1beta1.ConditionTrue
	})
	if apiequality.Semantic.DeepEqual(before.Status, seed.Status) {
		return ready, nil
	}
	// The list is written as a whole, and garden-controller-manager writes other conditions of it.
	return ready, c.Garden.Status().Patch(ctx, seed,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// withEmergencyStop gives the conditions with that of the emergency stop, which is there while it lasts.
func withEmergencyStop(seed *gardencorev1beta1.Seed, now time.Time) []gardencorev1beta1.Condition {
	const t = gardencorev1beta1.SeedEmergencyStopShootReconciliations
	if seed.Annotations[gardencorev1beta1.SeedEmergencyStop] != "true" {
		return conditions.Remove(seed.Status.Conditions, t)
	}
	return setConditions(seed.Status.Conditions, now,
		conditions.New(t, gardencorev1beta1.ConditionTrue, "EmergencyStopRequested",
			"Shoots are neither reconciled nor deleted until the annotation "+gardencorev1beta1.SeedEmergencyStop+
				" is removed."))
}

// gardenletReady says whether the Lease is renewed.
func (c *Care) gardenletReady(now time.Time) gardencorev1beta1.Condition {
	if now.Sub(c.Lease.LastRenewal()) < leaseGrace {
		return conditions.New(gardencorev1beta1.SeedGardenletReady, gardencorev1beta1.ConditionTrue, "GardenletReady",
			"Gardenlet is posting ready status.")
	}
	return conditions.New(gardencorev1beta1.SeedGardenletReady, gardencorev1beta1.ConditionFalse, "LeaseNotRenewed",
		"Gardenlet could not renew its Lease; see its log.")
}
