// Package managedseedset keeps the number of seeds that a ManagedSeedSet asks for: it creates shoots and makes them
// seeds, and takes seeds away again, one after the other. What a ManagedSeed does is gardenlet's task.
package managedseedset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/controllermanager/index"
	"github.com/trellis-garden/trellis/pkg/finalizer"
)

// DefaultSyncPeriod is how often a set is looked at although nothing seems to have changed.
const DefaultSyncPeriod = 30 * time.Minute

// Reconciler reconciles sets.
type Reconciler struct {
	Client client.Client
	// Replicas reads without a cache: a replica that was just created must not be created twice.
	Replicas   client.Reader
	SyncPeriod time.Duration
	Now        func() time.Time
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Replicas == nil {
		r.Replicas = mgr.GetAPIReader()
	}
	if r.SyncPeriod == 0 {
		r.SyncPeriod = DefaultSyncPeriod
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("managedseedset").
		For(&seedmanagementv1alpha1.ManagedSeedSet{}).
		Owns(&gardencorev1beta1.Shoot{}).
		Owns(&seedmanagementv1alpha1.ManagedSeed{}).
		Watches(&gardencorev1beta1.Seed{}, handler.EnqueueRequestsFromMapFunc(r.setOfSeed)).
		Complete(r)
}

// setOfSeed finds the set of a seed by its managed seed, which has the same name.
func (r *Reconciler) setOfSeed(ctx context.Context, seed client.Object) []reconcile.Request {
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: gardencorev1beta1.GardenNamespace, Name: seed.GetName()},
		managedSeed); err != nil {
		return nil
	}
	owner := metav1.GetControllerOf(managedSeed)
	if owner == nil || owner.Kind != "ManagedSeedSet" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: managedSeed.Namespace, Name: owner.Name}}}
}

// Reconcile takes one step for one set.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set := &seedmanagementv1alpha1.ManagedSeedSet{}
	if err := r.Client.Get(ctx, request.NamespacedName, set); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if set.DeletionTimestamp == nil {
		if err := finalizer.Ensure(ctx, r.Client, set, gardencorev1beta1.GardenerName); err != nil {
			return reconcile.Result{}, fmt.Errorf("managed seed set %s: %w", request, err)
		}
	}
	replicas, err := r.replicas(ctx, set)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("replicas of managed seed set %s: %w", request, err)
	}
	if set.DeletionTimestamp != nil && len(replicas) == 0 {
		return reconcile.Result{}, finalizer.Remove(ctx, r.Client, set, gardencorev1beta1.GardenerName)
	}
	known, err := r.revisions(ctx, set)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("revisions of managed seed set %s: %w", request, err)
	}
	step := decide(set, replicas, known.last())
	actErr := errors.Join(r.act(ctx, set, replicas, known, step), r.prune(ctx, set, known, replicas))
	if err := r.report(ctx, set, replicas, known.last(), step); err != nil {
		return reconcile.Result{}, fmt.Errorf("status of managed seed set %s: %w", request, err)
	}
	if actErr != nil {
		return reconcile.Result{}, fmt.Errorf("replica %s of managed seed set %s: %w", step.name, request, actErr)
	}
	return reconcile.Result{RequeueAfter: r.SyncPeriod}, nil
}

// replicas collects what belongs to a set.
func (r *Reconciler) replicas(ctx context.Context, set *seedmanagementv1alpha1.ManagedSeedSet) ([]replica, error) {
	shoots, managedSeeds := &gardencorev1beta1.ShootList{}, &seedmanagementv1alpha1.ManagedSeedList{}
	for _, list := range []client.ObjectList{shoots, managedSeeds} {
		if err := r.Replicas.List(ctx, list, client.InNamespace(set.Namespace)); err != nil {
			return nil, fmt.Errorf("listing %T: %w", list, err)
		}
	}
	found := map[int]*replica{}
	at := func(object client.Object) *replica {
		ordinal, ok := ordinalOf(set.Name, object.GetName())
		if !ok || !metav1.IsControlledBy(object, set) {
			return nil
		}
		if found[ordinal] == nil {
			found[ordinal] = &replica{name: object.GetName(), ordinal: ordinal}
		}
		return found[ordinal]
	}
	for i := range shoots.Items {
		if replica := at(&shoots.Items[i]); replica != nil {
			replica.shoot = &shoots.Items[i]
		}
	}
	for i := range managedSeeds.Items {
		if replica := at(&managedSeeds.Items[i]); replica != nil {
			replica.managedSeed = &managedSeeds.Items[i]
		}
	}
	var replicas []replica
	for _, replica := range found {
		if err := r.addSeed(ctx, replica); err != nil {
			return nil, err
		}
		replicas = append(replicas, *replica)
	}
	return replicas, nil
}

// addSeed adds the seed of a replica and how many shoots it hosts.
func (r *Reconciler) addSeed(ctx context.Context, replica *replica) error {
	seed := &gardencorev1beta1.Seed{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: replica.name}, seed)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("seed %s: %w", replica.name, err)
	}
	replica.seed = seed
	shoots := &gardencorev1beta1.ShootList{}
	if err := r.Client.List(ctx, shoots, index.OfSeed(seed.Name), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing shoots: %w", err)
	}
	replica.hosts = len(shoots.Items)
	return nil
}

func (r *Reconciler) act(ctx context.Context, set *seedmanagementv1alpha1.ManagedSeedSet, replicas []replica,
	known history, step decision) error {
	var target replica
	for _, replica := range replicas {
		if replica.name == step.name {
			target = replica
		}
	}
	switch step.verb {
	case createShoot:
		shoot, err := newShoot(set, step.name, known.last())
		if err != nil {
			return reconcile.TerminalError(err)
		}
		return r.Client.Create(ctx, shoot)
	case createManagedSeed:
		managedSeed, err := newManagedSeed(set, step.name, known.last())
		if err != nil {
			return reconcile.TerminalError(err)
		}
		return r.Client.Create(ctx, managedSeed)
	case retryShoot:
		return r.annotate(ctx, target.shoot, gardencorev1beta1.GardenerOperation,
			gardencorev1beta1.GardenerOperationRetry)
	case updateShoot:
		return r.bring(ctx, set, known, target.shoot, known.last())
	case updateManagedSeed:
		return r.bring(ctx, set, known, target.managedSeed, known.last())
	case deleteManagedSeed:
		return r.delete(ctx, target.managedSeed)
	case deleteShoot:
		return r.delete(ctx, target.shoot)
	}
	return nil
}

func (r *Reconciler) annotate(ctx context.Context, object client.Object, key, value string) error {
	patch := client.MergeFrom(object.DeepCopyObject().(client.Object))
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
	return r.Client.Patch(ctx, object, patch)
}

// delete confirms the deletion and asks for it.
func (r *Reconciler) delete(ctx context.Context, object client.Object) error {
	if err := r.annotate(ctx, object, gardencorev1beta1.ConfirmationDeletion, "true"); err != nil {
		return fmt.Errorf("confirming the deletion: %w", err)
	}
	uid := object.GetUID()
	return client.IgnoreNotFound(r.Client.Delete(ctx, object, client.Preconditions{UID: &uid}))
}

func (r *Reconciler) report(ctx context.Context, set *seedmanagementv1alpha1.ManagedSeedSet, replicas []replica,
	revision string, step decision) error {
	before := set.DeepCopy()
	observe(set, replicas, revision, step, metav1.NewTime(r.Now()))
	if apiequality.Semantic.DeepEqual(before.Status, set.Status) {
		return nil
	}
	return client.IgnoreNotFound(r.Client.Status().Patch(ctx, set, client.MergeFrom(before)))
}

// observe writes what there is and what is waited for into the status.
func observe(set *seedmanagementv1alpha1.ManagedSeedSet, replicas []replica, revision string, step decision,
	now metav1.Time) {
	status := &set.Status
	status.ObservedGeneration = set.Generation
	status.Replicas = int32(len(replicas))
	status.NextReplicaNumber = int32(nextOrdinal(set, replicas))
	status.ReadyReplicas = 0
	for _, replica := range replicas {
		if replica.state() == "" {
			status.ReadyReplicas++
		}
	}
	observeRevisions(status, replicas, revision)
	status.PendingReplica = pending(status.PendingReplica, step, now)
}

// observeRevisions counts the replicas before and after the update under way. Without one, both are the same.
func observeRevisions(status *seedmanagementv1alpha1.ManagedSeedSetStatus, replicas []replica, revision string) {
	status.UpdateRevision = revision
	status.UpdatedReplicas = following(replicas, revision)
	if status.CurrentRevision == "" || status.UpdatedReplicas == status.Replicas {
		status.CurrentRevision = revision
	}
	status.CurrentReplicas = following(replicas, status.CurrentRevision)
}

// following counts the replicas whose objects all follow a revision.
func following(replicas []replica, revision string) int32 {
	var count int32
	for _, replica := range replicas {
		if !slices.ContainsFunc(replica.objects(),
			func(object client.Object) bool { return revisionOf(object) != revision }) {
			count++
		}
	}
	return count
}

// pending keeps since when a replica is waited for, and counts its retries.
func pending(before *seedmanagementv1alpha1.PendingReplica, step decision,
	now metav1.Time) *seedmanagementv1alpha1.PendingReplica {
	if step.pending == "" {
		return nil
	}
	after := &seedmanagementv1alpha1.PendingReplica{Name: step.name, Reason: step.pending, Since: now}
	if before != nil && before.Name == step.name {
		after.Retries = before.Retries
		if before.Reason == step.pending {
			after.Since = before.Since
		}
	}
	if step.verb == retryShoot {
		after.Retries = new(ptr.Deref(after.Retries, 0) + 1)
	}
	return after
}
