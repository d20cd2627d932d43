// Package await waits until an object is as it should be. It watches the one object, so that the change is seen when it
// happens, and costs the API server one watch instead of a poll every few seconds.
package await

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trellis-garden/trellis/pkg/flow"
)

const (
	// recheck is how often the check runs without a change, because its answer may depend on the time.
	recheck = 5 * time.Second
	// reopen is the pause before a watch is opened again that ended or could not be opened.
	reopen = 200 * time.Millisecond
)

// Check judges an object. It returns nil when the wait is over, an error marked by flow.Permanent when waiting makes no
// sense any more, and else an error that says what is missing; it becomes part of the time-out's message.
type Check[T client.Object] func(object T) error

// Object waits until check accepts the object, which is read into object (its name and namespace must be set). As long
// as the object does not exist it is waited for.
func Object[T client.Object](ctx context.Context, c client.WithWatch, object T, check Check[T]) error {
	return wait(ctx, c, object, func(exists bool) error {
		if !exists {
			return errors.New("it does not exist yet")
		}
		return check(object)
	})
}

// Gone waits until the object does not exist. While it does, check (if not nil) may end the wait with a permanent error
// or say what is missing.
func Gone[T client.Object](ctx context.Context, c client.WithWatch, object T, check Check[T]) error {
	uid := object.GetUID()
	return wait(ctx, c, object, func(exists bool) error {
		if !exists || (uid != "" && object.GetUID() != uid) {
			return nil
		}
		if check != nil {
			if err := check(object); err != nil {
				return err
			}
		}
		return errors.New("it still exists")
	})
}

// wait runs check on every change until it returns nil or a permanent error, or ctx ends.
func wait[T client.Object](ctx context.Context, c client.WithWatch, object T, check func(exists bool) error) error {
	w := &waiter[T]{client: c, object: object, check: check}
	for {
		done, err := w.once(ctx)
		if done {
			return w.describe(err)
		}
		select {
		case <-ctx.Done():
			return w.describe(errors.Join(ctx.Err(), w.missing))
		case <-time.After(reopen):
		}
	}
}

// waiter is one wait.
type waiter[T client.Object] struct {
	client client.WithWatch
	object T
	check  func(exists bool) error
	// missing is what the last check said.
	missing error
}

// once watches until the wait is over (done) or the watch ends.
func (w *waiter[T]) once(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	list, err := w.list()
	if err != nil {
		return true, err
	}
	key := client.ObjectKeyFromObject(w.object)
	stream, err := w.client.Watch(ctx, list, client.InNamespace(key.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", key.Name)})
	if err != nil {
		w.missing = fmt.Errorf("watching: %w", err)
		return false, nil
	}
	defer stream.Stop()
	// The read comes after the watch was opened: what happens in between is seen by one of them.
	exists, err := w.read(ctx, key)
	if done, err := w.judge(ctx, exists, err); done {
		return true, err
	}
	return w.follow(ctx, stream)
}

// read gets the object.
func (w *waiter[T]) read(ctx context.Context, key client.ObjectKey) (exists bool, err error) {
	err = w.client.Get(ctx, key, w.object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// follow judges every event.
func (w *waiter[T]) follow(ctx context.Context, stream watch.Interface) (done bool, err error) {
	ticker := time.NewTicker(recheck)
	defer ticker.Stop()
	exists := w.object.GetResourceVersion() != ""
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case <-ticker.C:
		case event, open := <-stream.ResultChan():
			if !open || event.Type == watch.Error {
				return false, nil
			}
			current, ok := event.Object.(T)
			if !ok || event.Type == watch.Bookmark {
				continue
			}
			exists = event.Type != watch.Deleted
			if err := copyInto(current, w.object); err != nil {
				return true, err
			}
		}
		if done, err := w.judge(ctx, exists, nil); done {
			return true, err
		}
	}
}

// judge runs the check and remembers what is missing, which who looks at the flow is told.
func (w *waiter[T]) judge(ctx context.Context, exists bool, err error) (done bool, _ error) {
	if err == nil {
		err = w.check(exists)
	}
	if err == nil {
		return true, nil
	}
	w.missing = err
	flow.Awaits(ctx, w.describe(err))
	return flow.IsPermanent(err), err
}

// describe names the object in an error.
func (w *waiter[T]) describe(err error) error {
	if err == nil {
		return nil
	}
	kind := fmt.Sprintf("%T", w.object)
	if gvk, gvkErr := apiutil.GVKForObject(w.object, w.client.Scheme()); gvkErr == nil {
		kind = gvk.Kind
	}
	return fmt.Errorf("waiting for %s %s: %w", kind, client.ObjectKeyFromObject(w.object), err)
}

// list returns an empty list of the object's kind.
func (w *waiter[T]) list() (client.ObjectList, error) {
	gvk, err := apiutil.GVKForObject(w.object, w.client.Scheme())
	if err != nil {
		return nil, err
	}
	gvk.Kind += "List"
	object, err := w.client.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	list, ok := object.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%s is not a list", gvk)
	}
	_ = meta.SetList(list, nil)
	return list, nil
}
