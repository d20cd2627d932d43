package seed

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/conditions"
)

const (
	// leaseGrace is how old the Lease may be before gardenlet says that it is not ready.
	leaseGrace = 30 * time.Second
	// CareRetry is when a seed that is not ready, or whose conditions could not be written, is looked at again at the
	// latest: in the beginning everybody waits for it.
	CareRetry = 2 * time.Second
)

// Care writes the conditions of the Seed that can be told in the seed, by the clock: nothing announces what they say.
type Care struct {
	// Garden is a client of the garden.
	Garden client.Client
	// System is what the seed runs, Lease what proves that gardenlet is alive.
	System *System
	Lease  *Lease
	// Period between checks.
	Period time.Duration
}

// Reconcile checks the seed.
func (c *Care) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ready, err := c.check(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	wait := c.Period
	if !ready {
		wait = min(wait, CareRetry)
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// check writes the conditions and says whether all are True.
func (c *Care) check(ctx context.Context, name string) (bool, error) {
	seed := &gardencorev1beta1.Seed{}
	if err := c.Garden.Get(ctx, key(name), seed); err != nil {
		return false, fmt.Errorf("reading Seed %s: %w", name, err)
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
	if err := c.Garden.Status().Patch(ctx, seed,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("writing the conditions of Seed %s: %w", name, err)
	}
	return ready, nil
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
