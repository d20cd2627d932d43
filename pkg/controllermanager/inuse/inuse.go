// Package inuse keeps objects of the garden that others still refer to: quotas, cloud profiles, exposure classes. Each
// carries a finalizer, which goes when the object is being deleted and nobody uses it any more. Admission refuses most
// of these deletions at once; the finalizer covers what was created in the same moment.
package inuse

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/few"
	"github.com/trellis-garden/trellis/pkg/finalizer"
)

// usersShown bounds how many users of an object a message lists.
const usersShown = 5

// Reconciler reconciles the finalizer of one kind.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	kind     kind
}

// SetupWithManager registers the controller. A change of a user enqueues what it refers to.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Recorder == nil {
		r.Recorder = mgr.GetEventRecorder("garden-controller-manager")
	}
	builder := ctrl.NewControllerManagedBy(mgr).Named(r.kind.name + "-finalizer").For(r.kind.new())
	for _, user := range r.kind.users {
		builder = builder.Watches(user.new(), handler.EnqueueRequestsFromMapFunc(requests(user.references)))
	}
	return builder.Complete(r)
}

func requests(references func(client.Object) []client.ObjectKey) handler.MapFunc {
	return func(_ context.Context, object client.Object) []reconcile.Request {
		var result []reconcile.Request
		for _, key := range references(object) {
			result = append(result, reconcile.Request{NamespacedName: key})
		}
		return result
	}
}

// Reconcile adds the finalizer, or removes it when the object may go. A change of the last user comes back here.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := r.kind.new()
	if err := r.Client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var err error
	if object.GetDeletionTimestamp() == nil {
		err = finalizer.Ensure(ctx, r.Client, object, gardencorev1beta1.GardenerName)
	} else if controllerutil.ContainsFinalizer(object, gardencorev1beta1.GardenerName) {
		err = r.release(ctx, object)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("%s %s: %w", r.kind.name, request, err)
	}
	return reconcile.Result{}, nil
}

// release removes the finalizer if nobody uses the object any more.
func (r *Reconciler) release(ctx context.Context, object client.Object) error {
	users, err := r.users(ctx, client.ObjectKeyFromObject(object))
	if err != nil {
		return err
	}
	if len(users) > 0 {
		r.Recorder.Eventf(object, nil, corev1.EventTypeWarning, "DeletionBlocked", "Delete",
			"Still used by %s: delete or change these first", few.Joined(users, usersShown, ", "))
		return nil
	}
	return finalizer.Remove(ctx, r.Client, object, gardencorev1beta1.GardenerName)
}

// users names the objects that refer to the one with the key.
func (r *Reconciler) users(ctx context.Context, key client.ObjectKey) ([]string, error) {
	var found []string
	for _, user := range r.kind.users {
		objects, err := user.list(ctx, r.Client)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", user.plural, err)
		}
		for _, object := range objects {
			if refersTo(user, object, key) {
				found = append(found, user.singular+" "+
					strings.TrimPrefix(client.ObjectKeyFromObject(object).String(), "/"))
			}
		}
	}
	return found, nil
}

func refersTo(user user, object client.Object, key client.ObjectKey) bool {
	for _, reference := range user.references(object) {
		if reference == key {
			return true
		}
	}
	return false
}
