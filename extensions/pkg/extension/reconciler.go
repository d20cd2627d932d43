package extension

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/finalizer"
)

type reconciler[T extensionsv1alpha1.Object] struct {
	options Options[T]
	client  client.Client
	reader  client.Reader
	log     logr.Logger
}

// Reconcile implements reconcile.Reconciler: fetch, decide, pick up, work, write the outcome.
func (r *reconciler[T]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := newObject[T]()
	if err := r.reader.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	todo := decide(object)
	if todo == actionNone {
		return reconcile.Result{}, r.releaseMigrated(ctx, object)
	}
	if todo == actionDelete && !controllerutil.ContainsFinalizer(object, r.options.Finalizer) {
		return reconcile.Result{}, nil
	}
	shootCluster, err := cluster.Get(ctx, r.client, object.GetNamespace())
	if err != nil {
		return reconcile.Result{}, err
	}
	if todo == actionReconcile && shootCluster.HasFailed() {
		r.log.Info("left alone, because the shoot has failed and is not retried", "object", request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err := r.pickUp(ctx, object, todo); err != nil {
		return reconcile.Result{}, err
	}
	log := r.log.WithValues("object", request.NamespacedName, "operation", todo)
	log.Info("started")
	// The status as it was stored last; what the actuator changes is written relative to this.
	before := object.DeepCopyObject().(T)
	working, stop := r.workingContext(ctx, object, todo)
	workErr := r.act(working, log, object, todo, shootCluster)
	superseded := errors.Is(context.Cause(working), errSuperseded)
	stop()
	if superseded {
		log.Info("begun anew, as the object was changed meanwhile")
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil
	}
	if ctx.Err() != nil {
		// The process is ending. The operation stays unfinished in the status, and is repeated by the next process.
		return reconcile.Result{}, ctx.Err()
	}
	return r.finish(ctx, log, before, object, todo, workErr)
}

// errSuperseded is why an interruptible operation ends before its time.
var errSuperseded = errors.New("the object asks for something else now")

// supersedePeriod is how often the cache is looked at for a newer request.
const supersedePeriod = 250 * time.Millisecond

// workingContext is what the actuator works under: for interruptible reconciliations it ends when a newer request is
// there.
func (r *reconciler[T]) workingContext(ctx context.Context, object T,
	todo action) (context.Context, context.CancelFunc) {
	working, cancel := context.WithCancelCause(ctx)
	stop := func() { cancel(nil) }
	if !r.options.Interruptible || todo != actionReconcile {
		return working, stop
	}
	key := client.ObjectKeyFromObject(object)
	picked := object.GetResourceVersion()
	go func() {
		ticker := time.NewTicker(supersedePeriod)
		defer ticker.Stop()
		for {
			select {
			case <-working.Done():
				return
			case <-ticker.C:
			}
			current := newObject[T]()
			if err := r.client.Get(working, key, current); err == nil && supersedes(current, picked) {
				cancel(errSuperseded)
			}
		}
	}()
	return working, stop
}

// supersedes tells whether the object asks for something else than the reconciliation that was picked up with a
// version. The cache may still show the request that is being worked on.
func supersedes(current extensionsv1alpha1.Object, picked string) bool {
	if !newer(current.GetResourceVersion(), picked) {
		return false
	}
	return current.GetDeletionTimestamp() != nil || current.GetAnnotations()[gardencorev1beta1.GardenerOperation] != ""
}

// newer compares resource versions, which are growing numbers.
func newer(version, than string) bool {
	comparison, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && comparison > 0
}

// releaseMigrated lets go of an object that another seed took over and that is being deleted here.
func (r *reconciler[T]) releaseMigrated(ctx context.Context, object T) error {
	if object.GetDeletionTimestamp() == nil {
		return nil
	}
	return r.removeFinalizer(ctx, object)
}

// pickUp claims the object and says in its status that work has begun. The reconcile annotation goes first, so that a
// further request during the work is noticed.
func (r *reconciler[T]) pickUp(ctx context.Context, object T, todo action) error {
	metadata := client.MergeFromWithOptions(object.DeepCopyObject().(T), client.MergeFromWithOptimisticLock{})
	changed := todo != actionDelete && controllerutil.AddFinalizer(object, r.options.Finalizer)
	if annotations := object.GetAnnotations(); annotations[gardencorev1beta1.GardenerOperation] ==
		gardencorev1beta1.GardenerOperationReconcile {
		delete(annotations, gardencorev1beta1.GardenerOperation)
		object.SetAnnotations(annotations)
		changed = true
	}
	if changed {
		if err := r.client.Patch(ctx, object, metadata); err != nil {
			return fmt.Errorf("%s %s: pick up: %w", r.options.Kind, client.ObjectKeyFromObject(object), err)
		}
	}
	status := object.GetExtensionStatus()
	before := client.MergeFrom(object.DeepCopyObject().(T))
	status.LastOperation = lastOperation(operationType(todo, status.LastOperation),
		gardencorev1beta1.LastOperationStateProcessing, 1, r.sentence(verbs[todo].doing))
	if err := r.client.Status().Patch(ctx, object, before); err != nil {
		return fmt.Errorf("%s %s: writing status: %w", r.options.Kind, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

func (r *reconciler[T]) act(ctx context.Context, log logr.Logger, object T, todo action,
	shootCluster *cluster.Cluster) error {
	actuator := r.options.Actuator
	switch todo {
	case actionMigrate:
		if migrator, ok := actuator.(Migrator[T]); ok {
			return migrator.Migrate(ctx, log, object, shootCluster)
		}
		return nil
	case actionRestore:
		if restorer, ok := actuator.(Restorer[T]); ok {
			return restorer.Restore(ctx, log, object, shootCluster)
		}
	case actionDelete:
		if forceDeleter, ok := actuator.(ForceDeleter[T]); ok && shootCluster.IsForceDeleted() {
			return forceDeleter.ForceDelete(ctx, log, object, shootCluster)
		}
		return actuator.Delete(ctx, log, object, shootCluster)
	}
	return actuator.Reconcile(ctx, log, object, shootCluster)
}

// finish writes the outcome. After a success the annotations migrate and restore go, and, after a deletion or
// migration, the finalizer.
func (r *reconciler[T]) finish(ctx context.Context, log logr.Logger, before, object T, todo action,
	workErr error) (reconcile.Result, error) {
	r.setOutcome(object, todo, workErr)
	before.SetResourceVersion(object.GetResourceVersion())
	if err := r.client.Status().Patch(ctx, object, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("%s %s: writing status: %w", r.options.Kind,
			client.ObjectKeyFromObject(object), err)
	}
	if delay, asked := requeueDelay(workErr); asked {
		log.Info("unfinished", "reason", workErr.Error(), "again", delay)
		return reconcile.Result{RequeueAfter: delay}, nil
	}
	if workErr != nil {
		return reconcile.Result{}, fmt.Errorf("%s %s: %w", r.options.Kind, client.ObjectKeyFromObject(object), workErr)
	}
	log.Info("succeeded")
	return reconcile.Result{}, r.settle(ctx, object, todo)
}

// setOutcome puts the outcome into the status.
func (r *reconciler[T]) setOutcome(object T, todo action, workErr error) {
	status := object.GetExtensionStatus()
	kind := status.LastOperation.Type
	if _, asked := requeueDelay(workErr); asked {
		description := r.sentence(verbs[todo].doing) + ": " + workErr.Error()
		status.LastOperation = lastOperation(kind, gardencorev1beta1.LastOperationStateProcessing, 50, description)
		return
	}
	status.ObservedGeneration = object.GetGeneration()
	if workErr == nil {
		status.LastOperation = lastOperation(kind, gardencorev1beta1.LastOperationStateSucceeded, 100,
			r.sentence(verbs[todo].done))
		status.LastError = nil
		return
	}
	description := r.sentence(verbs[todo].failed) + ": " + workErr.Error()
	now := metav1.Now()
	status.LastOperation = lastOperation(kind, gardencorev1beta1.LastOperationStateError, 50, description)
	status.LastError = &gardencorev1beta1.LastError{
		Description: description, Codes: Codes(workErr), LastUpdateTime: &now,
	}
}

func (r *reconciler[T]) settle(ctx context.Context, object T, todo action) error {
	switch todo {
	case actionDelete:
		return r.removeFinalizer(ctx, object)
	case actionMigrate:
		if err := r.removeOperation(ctx, object); err != nil {
			return err
		}
		return r.removeFinalizer(ctx, object)
	case actionRestore:
		return r.removeOperation(ctx, object)
	}
	return nil
}

func (r *reconciler[T]) removeFinalizer(ctx context.Context, object T) error {
	if err := finalizer.Remove(ctx, r.client, object, r.options.Finalizer); err != nil {
		return fmt.Errorf("%s %s: %w", r.options.Kind, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

func (r *reconciler[T]) removeOperation(ctx context.Context, object T) error {
	before := client.MergeFrom(object.DeepCopyObject().(T))
	annotations := object.GetAnnotations()
	delete(annotations, gardencorev1beta1.GardenerOperation)
	object.SetAnnotations(annotations)
	if err := client.IgnoreNotFound(r.client.Patch(ctx, object, before)); err != nil {
		return fmt.Errorf("%s %s: removing the operation annotation: %w", r.options.Kind,
			client.ObjectKeyFromObject(object), err)
	}
	return nil
}

func (r *reconciler[T]) sentence(format string) string {
	return fmt.Sprintf(format, r.options.Kind)
}
