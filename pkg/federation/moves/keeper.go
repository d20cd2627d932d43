package moves

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
)

const (
	// writeAfter is how long moves are collected before they are written: many things move at once.
	writeAfter = 5 * time.Second
	// expireEvery is how often the oldest are looked at.
	expireEvery = time.Hour
)

// actions of events of the fleet's that say what became of an object, or why not.
var actions = sets.New("Evict", "Failover", "Rollout", "Schedule", "Scale", "Delete", "Remove")

// Keeper keeps moves. All replicas of the process see them; the leader writes.
type Keeper struct {
	client client.Client
	reader client.Reader
	scheme *runtime.Scheme
	now    func() time.Time
	// wake has something in it when there is something to write.
	wake chan struct{}

	mutex   sync.Mutex
	pending []Move
}

var _ manager.LeaderElectionRunnable = &Keeper{}

// Add has a manager keep the moves of its fleet: those of bindings, and those that events tell of, if their recorders
// are had of the manager that is returned.
func Add(ctx context.Context, mgr manager.Manager) (manager.Manager, error) {
	k := &Keeper{
		client: mgr.GetClient(), reader: mgr.GetAPIReader(), scheme: mgr.GetScheme(), now: time.Now,
		wake: make(chan struct{}, 1),
	}
	if err := errors.Join(k.watch(ctx, mgr.GetCache()), mgr.Add(k)); err != nil {
		return nil, fmt.Errorf("keeping moves: %w", err)
	}
	return recording{mgr, k}, nil
}

// watch compares each binding with what it was before.
func (k *Keeper) watch(ctx context.Context, informers cache.Cache) error {
	for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(k); err != nil {
			return err
		}
	}
	return nil
}

var _ toolscache.ResourceEventHandler = &Keeper{}

// OnAdd implements cache.ResourceEventHandler: a binding may be decided about when it is made.
func (k *Keeper) OnAdd(object any, isInInitialList bool) {
	if b, isBinding := object.(bindings.Binding); isBinding && !isInInitialList {
		k.see(Of(b)...)
	}
}

// OnUpdate implements cache.ResourceEventHandler.
func (k *Keeper) OnUpdate(before, after any) {
	old, hasOld := before.(bindings.Binding)
	if b, isBinding := after.(bindings.Binding); hasOld && isBinding {
		k.see(between(old, b)...)
	}
}

// OnDelete implements cache.ResourceEventHandler. What is deleted moves nowhere.
func (k *Keeper) OnDelete(any) {}

// see has moves written soon. Who does not lead sees them too, and writes what the leader before could not; the oldest
// of more than are kept are forgotten.
func (k *Keeper) see(moves ...Move) {
	if len(moves) == 0 {
		return
	}
	k.mutex.Lock()
	k.pending = append(k.pending, moves...)
	k.pending = k.pending[max(0, len(k.pending)-Most):]
	k.mutex.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *Keeper) take() []Move {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	taken := k.pending
	k.pending = nil
	return taken
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (k *Keeper) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it writes until the context ends. What cannot be written is tried again; nothing
// else waits for it.
func (k *Keeper) Start(ctx context.Context) error {
	ticker := time.NewTicker(expireEvery)
	defer ticker.Stop()
	var h *history
	for again := (<-chan time.Time)(nil); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-again:
		case <-k.wake:
			again = time.After(writeAfter)
			continue
		}
		again = nil
		var err error
		if h, err = k.write(ctx, h); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Moves could not be kept; it is tried again")
			again = time.After(writeAfter)
		}
	}
}

// write writes what was seen into the history, which it reads first if there is none yet.
func (k *Keeper) write(ctx context.Context, h *history) (*history, error) {
	if h == nil {
		var err error
		if h, err = readHistory(ctx, k.reader); err != nil {
			return nil, err
		}
	}
	for _, m := range k.take() {
		h.add(m, k.now())
	}
	for _, old := range h.expire(k.now()) {
		delete(h.dirty, old.number)
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: old.name()}}
		if err := client.IgnoreNotFound(k.client.Delete(ctx, c)); err != nil {
			return h, fmt.Errorf("deleting ConfigMap %s/%s: %w", Namespace, old.name(), err)
		}
	}
	for _, p := range h.pages {
		if !h.dirty[p.number] {
			continue
		}
		if err := k.put(ctx, p); err != nil {
			return h, fmt.Errorf("writing ConfigMap %s/%s: %w", Namespace, p.name(), err)
		}
		delete(h.dirty, p.number)
	}
	return h, nil
}

// put writes a page over whatever has its name.
func (k *Keeper) put(ctx context.Context, p *page) error {
	c, err := p.configMap()
	if err != nil {
		return err
	}
	if err := k.client.Update(ctx, c); !apierrors.IsNotFound(err) {
		return err
	}
	return k.client.Create(ctx, c)
}

// recording is a manager whose recorders of events tell the keeper, too.
type recording struct {
	manager.Manager
	keeper *Keeper
}

// GetEventRecorder implements manager.Manager.
func (r recording) GetEventRecorder(name string) events.EventRecorder {
	return recorder{r.Manager.GetEventRecorder(name), r.keeper}
}

type recorder struct {
	events.EventRecorder
	keeper *Keeper
}

// Eventf implements events.EventRecorder.
func (r recorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	r.EventRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
	if !actions.Has(action) {
		return
	}
	if about, known := r.keeper.about(regarding); known {
		r.keeper.see(Move{
			Time: metav1.NewTime(r.keeper.now()), Object: about, Type: action, Reason: reason,
			Message: fmt.Sprintf(note, args...),
		})
	}
}

// about names what an event is about: of a binding, the object that it is for.
func (k *Keeper) about(regarding runtime.Object) (Object, bool) {
	if b, isBinding := regarding.(bindings.Binding); isBinding {
		return objectOf(b), true
	}
	object, isObject := regarding.(client.Object)
	if !isObject {
		return Object{}, false
	}
	gvk, err := apiutil.GVKForObject(object, k.scheme)
	if err != nil {
		return Object{}, false
	}
	return Object{gvk.GroupVersion().String(), gvk.Kind, object.GetNamespace(), object.GetName()}, true
}
