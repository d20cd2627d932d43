// Package withdrawal takes down the control planes that a seed has still although they were restored on another one,
// when it comes back after an operator has confirmed that it is lost. Two of a control plane must not act: on its
// machines, its DNS records, its backups.
package withdrawal

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/deletion"
)

// fieldsOfSeed are those by which a Shoot names the seed that has it, or is to have it.
var fieldsOfSeed = []string{"spec.seedName", "status.seedName"}

// Withdrawer looks after one seed. It acts by two words of the garden: that the seed is confirmed to be lost, and that
// it does not have a shoot. A garden that has lost its data says neither, or only the latter.
type Withdrawer struct {
	// Garden is a client without a cache, Seed one of the seed.
	Garden client.Reader
	Seed   client.WithWatch
	// SeedName is the name of this seed.
	SeedName string
	// Period is the time between two looks.
	Period time.Duration
	Log    logr.Logger
}

// Start looks until ctx is done.
func (w *Withdrawer) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := w.Look(ctx); err != nil && ctx.Err() == nil {
			w.Log.Error(err, "Taking down control planes that other seeds have failed, and is tried again")
		}
	}, w.Period)
	return nil
}

// Look takes down what is not this seed's any more.
func (w *Withdrawer) Look(ctx context.Context) error {
	seed := &gardencorev1beta1.Seed{}
	if err := w.Garden.Get(ctx, client.ObjectKey{Name: w.SeedName}, seed); err != nil {
		return fmt.Errorf("reading Seed %s: %w", w.SeedName, err)
	}
	if !gardencorev1beta1.IsSeedLost(seed) {
		return nil
	}
	// What is here is listed first: a shoot that comes meanwhile is among those of the garden.
	namespaces := &corev1.NamespaceList{}
	if err := w.Seed.List(ctx, namespaces,
		client.MatchingLabels{gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleShoot}); err != nil {
		return fmt.Errorf("listing the namespaces of control planes: %w", err)
	}
	own, err := w.ownShoots(ctx)
	if err != nil {
		return err
	}
	var withdrawals []flow.TaskFn
	for i := range namespaces.Items {
		if uid := namespaces.Items[i].Annotations[gardencorev1beta1.AnnotationShootUID]; uid != "" && !own[uid] {
			withdrawals = append(withdrawals, func(ctx context.Context) error {
				return w.withdraw(ctx, namespaces.Items[i].Name, uid)
			})
		}
	}
	if len(withdrawals) == 0 {
		return nil
	}
	return flow.Parallel(withdrawals...)(ctx)
}

// ownShoots are the UIDs of the shoots that the garden has on this seed.
func (w *Withdrawer) ownShoots(ctx context.Context) (map[string]bool, error) {
	own := map[string]bool{}
	for _, field := range fieldsOfSeed {
		shoots := &gardencorev1beta1.ShootList{}
		if err := w.Garden.List(ctx, shoots, client.MatchingFields{field: w.SeedName}); err != nil {
			return nil, fmt.Errorf("listing the shoots by %s: %w", field, err)
		}
		for i := range shoots.Items {
			own[string(shoots.Items[i].UID)] = true
		}
	}
	return own, nil
}

func (w *Withdrawer) withdraw(ctx context.Context, namespace, uid string) error {
	log := w.Log.WithValues("namespace", namespace, "shoot", uid)
	log.Info("The seed is confirmed to be lost, and another one has this shoot; taking its control plane down here")
	graph, err := deletion.NewWithdrawal(namespace, uid, w.Seed).Flow()
	if err != nil {
		return err
	}
	if err := graph.Run(ctx, flow.Options{Log: log}); err != nil {
		return fmt.Errorf("control plane in namespace %s: %w", namespace, err)
	}
	log.Info("The control plane is taken down")
	return nil
}
