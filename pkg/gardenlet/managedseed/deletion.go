package managedseed

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/finalizer"
	"github.com/trellis-garden/trellis/pkg/gardenlet/deployment"
)

// delete makes a seed a mere shoot again: the Seed goes, which its gardenlet allows when it hosts nothing any more,
// then the gardenlet with its namespace, then its means to get access to the garden, and at last the finalizer.
func (r *Reconciler) delete(ctx context.Context, managedSeed *seedmanagementv1alpha1.ManagedSeed,
	shoot *gardencorev1beta1.Shoot) error {
	if !controllerutil.ContainsFinalizer(managedSeed, gardencorev1beta1.GardenerName) {
		return nil
	}
	shootReconciled := conditions.New(seedmanagementv1alpha1.ManagedSeedShootReconciled,
		gardencorev1beta1.ConditionTrue,
		"ShootReconciled", "The seed in shoot "+client.ObjectKeyFromObject(shoot).String()+" is being deleted.")
	for _, step := range []func() error{
		func() error { return r.deleteSeed(ctx, managedSeed.Name) },
		func() error { return r.uninstall(ctx, managedSeed, shoot) },
		// Until it ended, gardenlet may have registered the Seed once more.
		func() error { return r.deleteSeed(ctx, managedSeed.Name) },
		func() error { return r.removeFirstAccess(ctx, managedSeed.Name) },
	} {
		if err := step(); err != nil {
			return r.reportOutcome(ctx, managedSeed, shootReconciled, err)
		}
	}
	return finalizer.Remove(ctx, r.Garden, managedSeed, gardencorev1beta1.GardenerName)
}

// deleteSeed asks for the deletion of the Seed and waits until it is gone.
func (r *Reconciler) deleteSeed(ctx context.Context, name string) error {
	seed := &gardencorev1beta1.Seed{}
	err := r.Garden.Get(ctx, client.ObjectKey{Name: name}, seed)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil && seed.DeletionTimestamp == nil {
		err = client.IgnoreNotFound(r.Garden.Delete(ctx, seed))
	}
	if err != nil {
		return fmt.Errorf("deleting Seed %s: %w", name, err)
	}
	progress := "its gardenlet has not said yet what it waits for"
	if last := seed.Status.LastOperation; last != nil && last.Type == gardencorev1beta1.LastOperationTypeDelete {
		progress = last.Description
	}
	return waitFor("SeedDeleting", "Seed %s is being deleted: %s", name, progress)
}

// uninstall takes gardenlet, its gateway and all of its namespace out of the shoot, and at last the priority classes of
// a seed. A shoot without control plane has nothing left.
func (r *Reconciler) uninstall(ctx context.Context, managedSeed *seedmanagementv1alpha1.ManagedSeed,
	shoot *gardencorev1beta1.Shoot) error {
	shootTarget, err := r.connect(ctx, shoot)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	r.installed.forget(managedSeed.UID)
	for _, release := range []string{deployment.Name, gatewayName} {
		if err := shootTarget.helm.Uninstall(ctx, deployment.Namespace, release); err != nil {
			return err
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: deployment.Namespace}}
	err = shootTarget.client.Delete(ctx, namespace)
	if apierrors.IsNotFound(err) {
		return component.Delete(ctx, shootTarget.client, component.SeedPriorityClasses()...)
	}
	if err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting namespace %s of the shoot: %w", namespace.Name, err)
	}
	return waitFor("GardenletDeleting", "Namespace %s of the shoot is being deleted.", namespace.Name)
}
