package ownwrites

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// lagging reads what the server had when it was last synced.
type lagging struct {
	client.Client
	cached map[client.ObjectKey]*corev1.ConfigMap
}

func (l *lagging) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	found, ok := l.cached[key]
	if !ok {
		return apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
	}
	found.DeepCopyInto(object.(*corev1.ConfigMap))
	return nil
}

// sync the cache, and tell the handlers.
func (l *lagging) sync(t *testing.T, handlers *informer) {
	t.Helper()
	var list corev1.ConfigMapList
	if err := l.Client.List(context.Background(), &list); err != nil {
		t.Fatal(err)
	}
	old := l.cached
	l.cached = map[client.ObjectKey]*corev1.ConfigMap{}
	for i := range list.Items {
		l.cached[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
		handlers.handler.OnUpdate(nil, &list.Items[i])
	}
	for key, gone := range old {
		if l.cached[key] == nil {
			handlers.handler.OnDelete(gone)
		}
	}
}

type informer struct {
	handler toolscache.ResourceEventHandler
}

func (i *informer) AddEventHandler(
	handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.handler = handler
	return nil, nil
}

type world struct {
	*testing.T
	cache  *lagging
	events *informer
	now    time.Time
	own    *Client
}

func newWorld(t *testing.T) *world {
	w := &world{
		T: t, cache: &lagging{Client: fake.NewClientBuilder().Build()}, events: &informer{}, now: time.Unix(1000, 0),
	}
	w.own = New(w.cache, func() time.Time { return w.now })
	if err := w.own.Remember(&corev1.ConfigMap{}, w.events); err != nil {
		t.Fatal(err)
	}
	return w
}

var name = client.ObjectKey{Namespace: "a", Name: "b"}

func configMap(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Data:       map[string]string{"value": value},
	}
}

// reads the value; "" is that of one that is not there.
func (w *world) reads(want string) *corev1.ConfigMap {
	w.Helper()
	object := &corev1.ConfigMap{}
	if err := w.own.Get(context.Background(), name, object); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	if got := object.Data["value"]; got != want {
		w.Fatalf("read %q, want %q", got, want)
	}
	return object
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func TestOwnWritesAreReadAtOnce(t *testing.T) {
	w := newWorld(t)
	w.must(w.own.Create(context.Background(), configMap("1")))
	object := w.reads("1")
	object.Data["value"] = "2"
	w.reads("1")
	w.must(w.own.Update(context.Background(), object))
	object = w.reads("2")
	before := object.DeepCopy()
	object.Data["value"] = "3"
	w.must(w.own.Patch(context.Background(), object, client.MergeFrom(before)))
	w.reads("3")
}

func TestWhatTheCacheHasIsForgotten(t *testing.T) {
	w := newWorld(t)
	w.must(w.own.Create(context.Background(), configMap("1")))
	w.cache.sync(t, w.events)
	if len(w.own.written) != 0 {
		t.Fatal("the cache has the object, and the write is still remembered")
	}
	other := w.reads("1")
	other.Data["value"] = "other's"
	w.must(w.cache.Client.Update(context.Background(), other))
	w.reads("1")
	w.cache.sync(t, w.events)
	w.reads("other's")
}

func TestNewerCacheWins(t *testing.T) {
	w := newWorld(t)
	object := configMap("1")
	w.must(w.own.Create(context.Background(), object))
	object = object.DeepCopy()
	object.Data["value"] = "other's"
	w.must(w.cache.Client.Update(context.Background(), object))
	w.cache.cached = map[client.ObjectKey]*corev1.ConfigMap{name: object}
	w.reads("other's")
}

func TestDeletedObjectsAreNotRead(t *testing.T) {
	w := newWorld(t)
	w.must(w.own.Create(context.Background(), configMap("1")))
	w.must(w.own.Delete(context.Background(), configMap("")))
	w.reads("")

	w.must(w.own.Create(context.Background(), configMap("2")))
	seen := w.reads("2")
	w.must(w.cache.Client.Delete(context.Background(), seen))
	w.events.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: seen})
	w.reads("")
}

func TestAnswerAfterTheEndIsNotBelieved(t *testing.T) {
	w := newWorld(t)
	object := configMap("1")
	object.Finalizers = []string{"test/held"}
	w.must(w.own.Create(context.Background(), object))
	w.must(w.own.Delete(context.Background(), object.DeepCopy()))
	w.cache.sync(t, w.events)
	last := w.reads("1")
	last.Finalizers = nil
	w.must(w.own.Update(context.Background(), last))
	w.cache.sync(t, w.events)
	w.reads("")

	late := configMap("2")
	late.UID, late.ResourceVersion = "late", "1000000"
	w.events.handler.OnDelete(late)
	w.own.note(late)
	w.reads("")
}

func TestWritesNobodyHearsOfAreNotBelievedForEver(t *testing.T) {
	w := newWorld(t)
	w.must(w.own.Create(context.Background(), configMap("1")))
	w.now = w.now.Add(lifetime + time.Second)
	w.reads("")
	w.must(w.own.Create(context.Background(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "c"}}))
	if len(w.own.written) != 1 {
		t.Fatalf("%d writes are remembered, want the last one", len(w.own.written))
	}
}

func TestRefusedWriteIsForgotten(t *testing.T) {
	w := newWorld(t)
	stale := configMap("1")
	w.must(w.own.Create(context.Background(), stale))
	fresh := stale.DeepCopy()
	fresh.Data["value"] = "other's"
	w.must(w.cache.Client.Update(context.Background(), fresh))
	stale.Data["value"] = "2"
	if err := w.own.Update(context.Background(), stale); !apierrors.IsConflict(err) {
		t.Fatalf("got %v, want a conflict", err)
	}
	w.reads("")
}
