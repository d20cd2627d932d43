// Package managedseed makes seeds of shoots: for every ManagedSeed whose shoot runs on this seed it installs a
// gardenlet into the shoot, which registers the new seed, and takes it away again. How often there are such seeds, and
// what replaces what, is decided by garden-controller-manager (ManagedSeedSet).
package managedseed

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/finalizer"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

// Reconciler handles the ManagedSeeds of shoots. Its requests name shoots, which it comes back to all the time: a
// gardenlet may not watch all ManagedSeeds, and there are few shoots that could be seeds.
type Reconciler struct {
	// Garden and Seed are clients.
	Garden, Seed client.Client
	// GardenConfig is this gardenlet's access to the garden; others get its server and certificate authorities.
	GardenConfig *rest.Config
	// Config is this gardenlet's configuration, from which those of managed seeds take over what they leave out.
	Config *config.Configuration
	// Images resolves the image of gardenlet; ImageVectorOverwrite is what operators have replaced in it.
	Images               imagevector.Vector
	ImageVectorOverwrite string
	// ShootConfig returns administrative access to the shoot whose control plane lies in a namespace of the seed.
	ShootConfig func(ctx context.Context, seed client.Reader, namespace string) (*rest.Config, error)

	installed installations
}

// waitError says what has to happen, elsewhere, before the next step.
type waitError struct{ reason, message string }

// Error implements error.
func (e *waitError) Error() string { return e.message }

func waitFor(reason, format string, args ...any) error {
	return &waitError{reason: reason, message: fmt.Sprintf(format, args...)}
}

// Reconcile handles the ManagedSeed of one shoot, if it has one.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	shoot := &gardencorev1beta1.Shoot{}
	if err := r.Garden.Get(ctx, req.NamespacedName, shoot); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	managedSeed, err := r.managedSeedOf(ctx, shoot)
	if err != nil {
		return ctrl.Result{}, err
	}
	switch {
	case managedSeed == nil:
	case managedSeed.DeletionTimestamp != nil:
		err = r.delete(ctx, managedSeed, shoot)
	default:
		err = r.ensure(ctx, managedSeed, shoot)
	}
	return ctrl.Result{RequeueAfter: r.Config.Controllers.ManagedSeed.WaitSyncPeriod.Duration}, err
}

// managedSeedOf returns the ManagedSeed of a shoot; nil if there is none.
func (r *Reconciler) managedSeedOf(ctx context.Context,
	shoot *gardencorev1beta1.Shoot) (*seedmanagementv1alpha1.ManagedSeed, error) {
	list := &seedmanagementv1alpha1.ManagedSeedList{}
	if err := r.Garden.List(ctx, list, client.InNamespace(shoot.Namespace),
		client.MatchingFields{"spec.shoot.name": shoot.Name}); err != nil {
		return nil, fmt.Errorf("looking for the ManagedSeed of shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	return &list.Items[0], nil
}

// ensure brings a managed seed to what its ManagedSeed says.
func (r *Reconciler) ensure(ctx context.Context, managedSeed *seedmanagementv1alpha1.ManagedSeed,
	shoot *gardencorev1beta1.Shoot) error {
	if err := finalizer.Ensure(ctx, r.Garden, managedSeed, gardencorev1beta1.GardenerName); err != nil {
		return err
	}
	if !reconciled(shoot) {
		return r.report(ctx, managedSeed,
			conditions.New(seedmanagementv1alpha1.ManagedSeedShootReconciled, gardencorev1beta1.ConditionFalse,
				"ShootReconciling", "Shoot "+client.ObjectKeyFromObject(shoot).String()+" is not reconciled yet."))
	}
	if r.installed.settled(managedSeed.UID, managedSeed.Generation, time.Now()) {
		return nil
	}
	if r.untilTurn(managedSeed, time.Now()) > 0 {
		return nil
	}
	shootReconciled := conditions.New(seedmanagementv1alpha1.ManagedSeedShootReconciled,
		gardencorev1beta1.ConditionTrue,
		"ShootReconciled", "Shoot "+client.ObjectKeyFromObject(shoot).String()+" is reconciled.")
	err := r.install(ctx, managedSeed, shoot)
	if err == nil {
		err = r.registered(ctx, managedSeed.Name)
	}
	if err == nil {
		r.installed.looked(managedSeed.UID, managedSeed.Generation, time.Now())
	}
	return r.reportOutcome(ctx, managedSeed, shootReconciled, err)
}

// untilTurn says how long the installation may wait: that of what is a seed already, as its ManagedSeed says, until its
// turn after the start of gardenlet. What is new, was changed or is asked for does not wait.
func (r *Reconciler) untilTurn(managedSeed *seedmanagementv1alpha1.ManagedSeed, now time.Time) time.Duration {
	if managedSeed.Annotations[gardencorev1beta1.GardenerOperation] != "" ||
		managedSeed.Status.ObservedGeneration != managedSeed.Generation ||
		!conditions.IsTrue(managedSeed.Status.Conditions, seedmanagementv1alpha1.ManagedSeedSeedRegistered) {
		return 0
	}
	return r.installed.untilTurn(managedSeed.UID, r.Config.Controllers.ManagedSeed.SyncJitterPeriod.Duration, now)
}

// reportOutcome writes the conditions. What is waited for is no failure.
func (r *Reconciler) reportOutcome(ctx context.Context, managedSeed *seedmanagementv1alpha1.ManagedSeed,
	shootReconciled gardencorev1beta1.Condition, err error) error {
	registered := conditions.New(seedmanagementv1alpha1.ManagedSeedSeedRegistered, gardencorev1beta1.ConditionTrue,
		"SeedRegistered", "Seed "+managedSeed.Name+" is registered.")
	var waiting *waitError
	switch {
	case errors.As(err, &waiting):
		registered.Status, registered.Reason, registered.Message = gardencorev1beta1.ConditionFalse, waiting.reason,
			waiting.message
		err = nil
	case err != nil:
		registered.Status, registered.Reason, registered.Message = gardencorev1beta1.ConditionFalse,
			"GardenletInstallationFailed", err.Error()
	}
	return errors.Join(err, r.report(ctx, managedSeed, shootReconciled, registered))
}

// registered waits for the Seed.
func (r *Reconciler) registered(ctx context.Context, name string) error {
	seed := &gardencorev1beta1.Seed{}
	err := r.Garden.Get(ctx, client.ObjectKey{Name: name}, seed)
	if apierrors.IsNotFound(err) {
		return waitFor("SeedNotRegistered",
			"Gardenlet is installed and has not registered Seed %s yet: if this lasts, see its log in namespace "+
				"garden of the shoot.", name)
	}
	if err != nil {
		return fmt.Errorf("reading Seed %s: %w", name, err)
	}
	return nil
}

// reconciled says whether a shoot is as its specification asks.
func reconciled(shoot *gardencorev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return last != nil && last.State == gardencorev1beta1.LastOperationStateSucceeded &&
		shoot.Status.ObservedGeneration == shoot.Generation
}
