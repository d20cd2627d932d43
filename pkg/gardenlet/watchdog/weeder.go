package watchdog

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
)

const (
	// weedTime is for how long after a service turned ready pods that wait for it are deleted, weedPeriod how often
	// they are looked for.
	weedTime   = 5 * time.Minute
	weedPeriod = 15 * time.Second
	// mostWeeded is how many pods of one owner are deleted in that time: what goes on crashing has another reason.
	mostWeeded = 3
	// crashLoop is the reason of a container that waits because it has crashed.
	crashLoop = "CrashLoopBackOff"
)

// dependencies are the services of control planes that others wait for.
func dependencies() []string { return append(etcdServices(), kubeapiserver.Name) }

func etcdServices() []string {
	return []string{
		etcdcomponent.ClientServiceName(etcdcomponent.Main), etcdcomponent.ClientServiceName(etcdcomponent.Events),
	}
}

// Weeder deletes pods that wait in CrashLoopBackOff for a service of their control plane that has turned ready. A
// request is for a service.
type Weeder struct {
	// Garden reads Seeds; it may be a cache.
	Garden client.Reader
	// Seed is a client of the seed, which has no cache.
	Seed client.Client
	// SeedName is the name of the seed.
	SeedName string
	// Now is time.Now if nil.
	Now func() time.Time

	mu      sync.Mutex
	windows map[types.NamespacedName]*window
}

// window is the time after a service has turned ready.
type window struct {
	end time.Time
	// weeded counts deleted pods by the UIDs of their owners.
	weeded map[types.UID]int
}

// TurnedReady passes EndpointSlices that lead somewhere since just now; of those that are there when gardenlet starts,
// nobody knows.
func TurnedReady() predicate.TypedPredicate[*discoveryv1.EndpointSlice] {
	return predicate.TypedFuncs[*discoveryv1.EndpointSlice]{
		CreateFunc: func(e event.TypedCreateEvent[*discoveryv1.EndpointSlice]) bool { return isReady(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*discoveryv1.EndpointSlice]) bool {
			return !isReady(e.ObjectOld) && isReady(e.ObjectNew)
		},
		DeleteFunc: func(event.TypedDeleteEvent[*discoveryv1.EndpointSlice]) bool { return false },
	}
}

func isReady(slice *discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool {
		return ptr.Deref(e.Conditions.Ready, true)
	})
}

// Begin takes note that the service of an EndpointSlice has turned ready, and returns the request for it.
func (w *Weeder) Begin(_ context.Context, slice *discoveryv1.EndpointSlice) []reconcile.Request {
	key := types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.windows == nil {
		w.windows = map[types.NamespacedName]*window{}
	}
	w.windows[key] = &window{end: w.now().Add(weedTime), weeded: map[types.UID]int{}}
	return []reconcile.Request{{NamespacedName: key}}
}

// Reconcile deletes what waits for one service.
func (w *Weeder) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	open := w.windowOf(req.NamespacedName)
	if open == nil {
		return ctrl.Result{}, nil
	}
	_, enabled, err := settingsOf(ctx, w.Garden, w.SeedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	next := ctrl.Result{RequeueAfter: weedPeriod}
	if !enabled {
		return next, nil
	}
	isShoots, err := w.isOfShoot(ctx, req.Namespace)
	if err != nil || !isShoots {
		return ctrl.Result{}, err
	}
	return next, w.weed(ctx, req.NamespacedName, open)
}

// windowOf returns the window of a service; nil when it is over.
func (w *Weeder) windowOf(key types.NamespacedName) *window {
	w.mu.Lock()
	defer w.mu.Unlock()
	open := w.windows[key]
	if open == nil || !w.now().Before(open.end) {
		delete(w.windows, key)
		return nil
	}
	return open
}

// isOfShoot says whether a namespace of the seed is that of a shoot: the garden may run in the same cluster.
func (w *Weeder) isOfShoot(ctx context.Context, name string) (bool, error) {
	namespace := &corev1.Namespace{}
	if err := w.Seed.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return namespace.DeletionTimestamp == nil &&
		namespace.Labels[gardencorev1beta1.GardenRole] == gardencorev1beta1.GardenRoleShoot, nil
}

// weed deletes the pods that wait.
func (w *Weeder) weed(ctx context.Context, service types.NamespacedName, open *window) error {
	selector, err := dependents(service.Name)
	if err != nil {
		return err
	}
	pods := &corev1.PodList{}
	if err := w.Seed.List(ctx, pods, client.InNamespace(service.Namespace),
		client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("listing the pods that wait for Service %s: %w", service, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		owner := metav1.GetControllerOf(pod)
		if owner == nil || !isStuck(pod) || open.weeded[owner.UID] >= mostWeeded {
			continue
		}
		if err := client.IgnoreNotFound(w.Seed.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})); err != nil {
			return fmt.Errorf("deleting pod %s/%s, which waits for Service %s: %w", pod.Namespace, pod.Name,
				service.Name, err)
		}
		open.weeded[owner.UID]++
		ctrl.LoggerFrom(ctx).Info("Starting a pod anew that has crashed, as what it depends on is ready", "pod",
			pod.Name)
	}
	return nil
}

// dependents selects the pods that wait for a service: the API server for its etcds, and all others for the API server.
func dependents(service string) (labels.Selector, error) {
	apiServer := kubeapiserver.Labels()[component.LabelRole]
	operator, roles := selection.In, []string{apiServer}
	if service == kubeapiserver.Name {
		operator = selection.NotIn
		roles = append(roles, string(etcdcomponent.Main), string(etcdcomponent.Events))
	}
	byRole, err := labels.NewRequirement(component.LabelRole, operator, roles)
	if err != nil {
		return nil, fmt.Errorf("selecting what depends on Service %s: %w", service, err)
	}
	ours := labels.SelectorFromSet(labels.Set{component.LabelGardenRole: component.GardenRoleControlPlane})
	return ours.Add(*byRole), nil
}

// isStuck says whether a container of a pod waits because it has crashed.
func isStuck(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(
		slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses),
		func(s corev1.ContainerStatus) bool {
			return s.State.Waiting != nil && s.State.Waiting.Reason == crashLoop
		})
}

func (w *Weeder) now() time.Time {
	if w.Now == nil {
		return time.Now()
	}
	return w.Now()
}
