// Package extension is the framework for controllers of extension kinds (extensions.gardener.cloud): an author gives an
// Actuator for a kind and a type; finalizers, the operation annotation, the operation's status, error codes, retries
// and the shoot's Cluster are taken care of.
package extension

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// Actuator makes true what an extension object asks for. Both functions are idempotent and may set the object's status;
// it is written when they return. The cluster is nil for objects that belong to no shoot.
type Actuator[T extensionsv1alpha1.Object] interface {
	// Reconcile creates or updates.
	Reconcile(ctx context.Context, log logr.Logger, object T, cluster *cluster.Cluster) error
	// Delete removes everything that Reconcile made, and returns when it is gone.
	Delete(ctx context.Context, log logr.Logger, object T, cluster *cluster.Cluster) error
}

// Migrator is implemented by actuators that have something to do when a shoot leaves a seed: stop managing, and put
// what the next seed needs into status.state. Without it nothing is done.
type Migrator[T extensionsv1alpha1.Object] interface {
	Migrate(ctx context.Context, log logr.Logger, object T, cluster *cluster.Cluster) error
}

// Restorer is implemented by actuators that use status.state when a shoot arrives in a seed. Without it Reconcile is
// called.
type Restorer[T extensionsv1alpha1.Object] interface {
	Restore(ctx context.Context, log logr.Logger, object T, cluster *cluster.Cluster) error
}

// ForceDeleter is implemented by actuators that can give up on the infrastructure. Without it Delete is called.
type ForceDeleter[T extensionsv1alpha1.Object] interface {
	ForceDelete(ctx context.Context, log logr.Logger, object T, cluster *cluster.Cluster) error
}

// Options describe a controller.
type Options[T extensionsv1alpha1.Object] struct {
	// Kind is the kind, e.g. Infrastructure.
	Kind string
	// Type is the spec.type that this controller is responsible for.
	Type string
	// Actuator does the work.
	Actuator Actuator[T]
	// Finalizer defaults to extensions.gardener.cloud/<kind in lower case>; kind Extension uses its type instead.
	Finalizer string
	// Interruptible says that the actuator may be told to stop, by its context, when the object is changed or deleted
	// during a reconciliation; the work then begins anew. It is for actuators that wait for long.
	Interruptible bool
	// MaxConcurrentReconciles defaults to 20: operations mostly wait.
	MaxConcurrentReconciles int
	// RetryBase and RetryMax bound the exponential wait after errors. Default 500 ms and 1 min.
	RetryBase, RetryMax time.Duration
}

func (o *Options[T]) setDefaults() {
	if o.Finalizer == "" {
		o.Finalizer = extensionsv1alpha1.FinalizerPrefix + finalizerName(o.Kind, o.Type)
	}
	if o.MaxConcurrentReconciles == 0 {
		o.MaxConcurrentReconciles = 20
	}
	if o.RetryBase == 0 {
		o.RetryBase = 500 * time.Millisecond
	}
	if o.RetryMax == 0 {
		o.RetryMax = time.Minute
	}
}

func finalizerName(kind, extensionType string) string {
	switch kind {
	case "Extension":
		return extensionType
	case "OperatingSystemConfig":
		return "operatingsystemconfigs"
	}
	return strings.ToLower(kind)
}

// Add registers a controller with the manager.
func Add[T extensionsv1alpha1.Object](mgr manager.Manager, options Options[T]) error {
	options.setDefaults()
	r := &reconciler[T]{
		options: options,
		client:  mgr.GetClient(),
		// Decisions are made on what is stored, not on a cache that may lag behind our own writes.
		reader: mgr.GetAPIReader(),
		log:    mgr.GetLogger().WithName(strings.ToLower(options.Kind)),
	}
	err := builder.ControllerManagedBy(mgr).
		Named(strings.ToLower(options.Kind+"-"+options.Type)).
		For(newObject[T](), builder.WithPredicates(relevant(options.Type))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: options.MaxConcurrentReconciles,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				options.RetryBase, options.RetryMax),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the controller for %s of type %s: %w", options.Kind, options.Type, err)
	}
	return nil
}

// newObject makes an empty object of a kind whose Go type is a pointer.
func newObject[T extensionsv1alpha1.Object]() T {
	var zero T
	return reflect.New(reflect.TypeOf(zero).Elem()).Interface().(T)
}

// relevant lets through events of objects of the type that ask for something.
func relevant(extensionType string) predicate.Predicate {
	pass := func(before, after client.Object) bool {
		object, ok := after.(extensionsv1alpha1.Object)
		if !ok || object.GetExtensionSpec().Type != extensionType {
			return false
		}
		previous, _ := before.(extensionsv1alpha1.Object)
		return isWanted(previous, object)
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return pass(nil, e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return pass(e.ObjectOld, e.ObjectNew) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(e event.GenericEvent) bool { return pass(nil, e.Object) },
	}
}
