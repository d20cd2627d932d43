package dependencies

import (
	"context"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/setup"
	"github.com/trellis-garden/trellis/pkg/federation/references"
)

// requiredByIndex indexes bindings by those that require them.
const requiredByIndex = "requiredBy"

// Options of the controller.
type Options struct {
	// Source tells what objects refer to.
	Source references.Source
	// Skipped tells which objects are never propagated.
	Skipped func(*unstructured.Unstructured) bool
	// Settings of the controller.
	Settings setup.Settings
}

// Controller is the running controller.
type Controller struct {
	*dependencies
	controller controller.Controller
	manager    manager.Manager
}

// Add registers the controller with a manager. watch must have the objects of a kind watched, here
// ([Controller.WatchKind]) and wherever templates are.
func Add(ctx context.Context, mgr manager.Manager, options Options) (*Controller, error) {
	d := &dependencies{
		client: mgr.GetClient(), events: mgr.GetEventRecorder("dependencies"), source: options.Source,
		index: newIndex(), skipped: options.Skipped,
	}
	c, err := setup.New(mgr, "dependencies", options.Settings(d),
		source.Kind(mgr.GetCache(), &workv1alpha2.ResourceBinding{}, onBinding[*workv1alpha2.ResourceBinding](),
			relevant[*workv1alpha2.ResourceBinding]()),
		source.Kind(mgr.GetCache(), &workv1alpha2.ClusterResourceBinding{},
			onBinding[*workv1alpha2.ClusterResourceBinding](), relevant[*workv1alpha2.ClusterResourceBinding]()),
	)
	if err != nil {
		return nil, err
	}
	indexer := mgr.GetFieldIndexer()
	return &Controller{dependencies: d, controller: c, manager: mgr}, errors.Join(
		indexer.IndexField(ctx, &workv1alpha2.ResourceBinding{}, requiredByIndex, indexRequiredBy),
		indexer.IndexField(ctx, &workv1alpha2.ClusterResourceBinding{}, requiredByIndex, indexRequiredBy),
	)
}

// Using says how the watch of a kind is started. It must be called before the manager starts.
func (c *Controller) Using(watch func(schema.GroupVersionKind) error) { c.watch = watch }

func indexRequiredBy(object client.Object) []string {
	b, ok := object.(bindings.Binding)
	if !ok {
		return nil
	}
	var keys []string
	for _, s := range b.BindingSpec().RequiredBy {
		keys = append(keys, references.KeyOf(s).String())
	}
	return keys
}

// onBinding wakes a binding as a referrer, and those that require it: it may have lost its entry or its policy.
func onBinding[B bindings.Binding]() handler.TypedEventHandler[B, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, b B) []reconcile.Request {
		requests := []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(b)}}
		for _, s := range b.BindingSpec().RequiredBy {
			requests = append(requests, reconcile.Request{NamespacedName: references.KeyOf(s)})
		}
		return requests
	})
}

func relevant[B client.Object]() predicate.TypedPredicate[B] {
	return predicate.Or[B](predicate.TypedGenerationChangedPredicate[B]{}, predicate.TypedLabelChangedPredicate[B]{})
}

// Watch adds a source of bindings to look at.
func (c *Controller) Watch(s source.Source) error { return c.controller.Watch(s) }

// Unhurried wraps a source so that the controller's start does not wait for its sync: the kind may not exist.
func Unhurried[R comparable](s source.TypedSource[R]) source.TypedSource[R] { return unhurried[R]{s} }

// unhurried hides that a source can be waited for.
type unhurried[R comparable] struct{ source.TypedSource[R] }

// WatchKind wakes referrers when objects of the kind change: those that refer to them, and the objects' own bindings.
func (c *Controller) WatchKind(gvk schema.GroupVersionKind) error {
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(gvk)
	wake := func(queue workqueue.TypedRateLimitingInterface[reconcile.Request], object *unstructured.Unstructured) {
		for _, referrer := range c.index.referrers(gvk, object) {
			queue.Add(reconcile.Request{NamespacedName: referrer})
		}
	}
	return c.controller.Watch(Unhurried(source.TypedKind(c.manager.GetCache(), kind,
		handler.TypedFuncs[*unstructured.Unstructured, reconcile.Request]{
			CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*unstructured.Unstructured],
				queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				wake(queue, e.Object)
			},
			UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*unstructured.Unstructured],
				queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				if !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
					e.ObjectNew.GetDeletionTimestamp() != nil {
					wake(queue, e.ObjectOld)
					wake(queue, e.ObjectNew)
				}
				if meaningChanged(e.ObjectOld, e.ObjectNew) {
					queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{
						Namespace: e.ObjectNew.GetNamespace(), Name: bindings.Name(e.ObjectNew.GetName(), gvk.Kind),
					}})
				}
			},
			DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*unstructured.Unstructured],
				queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				wake(queue, e.Object)
			},
		})))
}

// meaningChanged is false for changes of the status. What has no generation counts as changed.
func meaningChanged(before, after *unstructured.Unstructured) bool {
	return after.GetGeneration() == 0 || before.GetGeneration() != after.GetGeneration() ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}
