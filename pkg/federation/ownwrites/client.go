// Package ownwrites gives a client that reads what was written through it at once, although it reads from a cache that
// hears of the writes a little later. Without it a controller that looks again too soon takes its own last write for
// somebody else's: it is refused with a conflict, and tries again until the cache has heard.
package ownwrites

import (
	"context"
	"maps"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lifetime is how long a write is believed that the cache never hears of: its object may be gone again.
const lifetime = 30 * time.Second

// Client remembers what it wrote of certain kinds until the cache has it too. Objects of other kinds pass through it.
type Client struct {
	client.Client
	now func() time.Time

	mu      sync.Mutex
	kinds   map[reflect.Type]bool
	written map[key]write
	// ended are objects that the cache heard the end of: an answer to a write may come after that.
	ended  map[types.UID]time.Time
	purged time.Time
}

type key struct {
	kind reflect.Type
	client.ObjectKey
}

type write struct {
	object client.Object
	at     time.Time
}

// New wraps a client that reads from a cache. now gives the time.
func New(inner client.Client, now func() time.Time) *Client {
	return &Client{
		Client: inner, now: now, kinds: map[reflect.Type]bool{}, written: map[key]write{},
		ended: map[types.UID]time.Time{},
	}
}

// Remember the writes of objects of this kind. The informer, which has to be that of the cache, says when they are
// heard of.
func (c *Client) Remember(prototype client.Object, informer interface {
	AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error)
}) error {
	c.mu.Lock()
	c.kinds[reflect.TypeOf(prototype)] = true
	c.mu.Unlock()
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    c.heard,
		UpdateFunc: func(_, object any) { c.heard(object) },
		DeleteFunc: c.gone,
	})
	return err
}

func keyOf(object client.Object) key {
	return key{reflect.TypeOf(object), client.ObjectKeyFromObject(object)}
}

// heard forgets what the cache has, or something newer.
func (c *Client) heard(object any) {
	o, ok := object.(client.Object)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w, found := c.written[keyOf(o)]; found && !newer(w.object, o) {
		delete(c.written, keyOf(o))
	}
}

func (c *Client) gone(object any) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	o, ok := object.(client.Object)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.kinds[reflect.TypeOf(o)] {
		return
	}
	now := c.now()
	c.purge(now)
	c.ended[o.GetUID()] = now
	if w, found := c.written[keyOf(o)]; found && w.object.GetUID() == o.GetUID() {
		delete(c.written, keyOf(o))
	}
}

// newer tells whether a is a later version than b. What cannot be compared is not.
func newer(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}

// note a write that succeeded; object is what the server answered.
func (c *Client) note(object client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := keyOf(object)
	if !c.kinds[k.kind] {
		return
	}
	now := c.now()
	c.purge(now)
	if _, ended := c.ended[object.GetUID()]; ended || isEnd(object) {
		delete(c.written, k)
		return
	}
	if old, found := c.written[k]; found && newer(old.object, object) {
		return
	}
	copied := object.DeepCopyObject().(client.Object)
	copied.SetManagedFields(nil)
	c.written[k] = write{copied, now}
}

// isEnd tells whether a write was an object's last one: with its last finalizer it is gone.
func isEnd(object client.Object) bool {
	return object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0
}

// purge drops, now and then, what the cache has not heard of for too long.
func (c *Client) purge(now time.Time) {
	if now.Sub(c.purged) < lifetime {
		return
	}
	c.purged = now
	maps.DeleteFunc(c.written, func(_ key, w write) bool { return now.Sub(w.at) > lifetime })
	maps.DeleteFunc(c.ended, func(_ types.UID, at time.Time) bool { return now.Sub(at) > lifetime })
}

// Newer gives the last write of the object that wanted names, if it is later than known, which may be nil; else nil.
// The result must not be changed.
func (c *Client) Newer(wanted, known client.Object) client.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, found := c.written[keyOf(wanted)]
	if !found || c.now().Sub(w.at) > lifetime || !isNil(known) && !newer(w.object, known) {
		return nil
	}
	return w.object
}

func isNil(object client.Object) bool { return object == nil || reflect.ValueOf(object).IsNil() }

// Get gives the later of what the cache has and what was written.
func (c *Client) Get(ctx context.Context, name client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	err := c.Client.Get(ctx, name, object, options...)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	named := reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
	named.SetNamespace(name.Namespace)
	named.SetName(name.Name)
	known := object
	if err != nil {
		known = nil
	}
	last := c.Newer(named, known)
	if last == nil {
		return err
	}
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(last.DeepCopyObject()).Elem())
	return nil
}

// Create passes on and remembers.
func (c *Client) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return c.noted(object, c.Client.Create(ctx, object, options...))
}

// Update passes on and remembers.
func (c *Client) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	return c.noted(object, c.Client.Update(ctx, object, options...))
}

// Patch passes on and remembers.
func (c *Client) Patch(ctx context.Context, object client.Object, patch client.Patch,
	options ...client.PatchOption) error {
	return c.noted(object, c.Client.Patch(ctx, object, patch, options...))
}

// Delete passes on. What was written is no longer believed: the object may be gone.
func (c *Client) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	c.forget(object)
	return c.Client.Delete(ctx, object, options...)
}

func (c *Client) forget(object client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.written, keyOf(object))
}

func (c *Client) noted(object client.Object, err error) error {
	switch {
	case err == nil:
		c.note(object)
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		// Somebody else knows better; the cache will.
		c.forget(object)
	}
	return err
}

// Status writes statuses and remembers.
func (c *Client) Status() client.SubResourceWriter { return statusWriter{c.Client.Status(), c} }

type statusWriter struct {
	client.SubResourceWriter
	client *Client
}

// Update passes on and remembers.
func (w statusWriter) Update(ctx context.Context, object client.Object,
	options ...client.SubResourceUpdateOption) error {
	return w.client.noted(object, w.SubResourceWriter.Update(ctx, object, options...))
}

// Patch passes on and remembers.
func (w statusWriter) Patch(ctx context.Context, object client.Object, patch client.Patch,
	options ...client.SubResourcePatchOption) error {
	return w.client.noted(object, w.SubResourceWriter.Patch(ctx, object, patch, options...))
}
