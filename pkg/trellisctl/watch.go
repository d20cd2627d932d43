package trellisctl

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// relistPause is how long a watch waits before it lists again, when the garden did not answer.
const relistPause = time.Second

// follower prints a list and then what changes.
type follower struct {
	*lister
	// messages tells of lost connections.
	messages io.Writer
	// retry is how long to wait before all is listed again.
	retry time.Duration
	// known are the objects that were printed, with what was printed.
	known map[client.ObjectKey]printed
	// lost says that the connection is, and that this was told.
	lost bool
}

// printed is an object as it was printed last.
type printed struct {
	object client.Object
	text   string
}

// follow prints the objects, and then a line for each change, until ctx ends.
func (l *lister) follow(ctx context.Context, messages io.Writer) error {
	f := &follower{lister: l, messages: messages, retry: relistPause}
	return f.run(ctx)
}

func (f *follower) run(ctx context.Context) error {
	for ctx.Err() == nil {
		objects, version, err := f.read(ctx)
		switch {
		case err != nil && (f.known == nil || isRefusal(err)):
			return err
		case err != nil:
			f.tellLost(ctx, err)
		default:
			f.lost = false
			if err := f.catchUp(objects); err != nil {
				return err
			}
			if err := f.changes(ctx, version); err != nil {
				return err
			}
		}
		pause(ctx, f.retry)
	}
	return ctx.Err()
}

// isRefusal says that the garden answered, and will not answer otherwise when it is asked again.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsInvalid(err) || apierrors.IsNotFound(err)
}

// pause waits until a time is over, or the context.
func pause(ctx context.Context, duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// tellLost tells once that the connection is lost.
func (f *follower) tellLost(ctx context.Context, err error) {
	if !f.lost && ctx.Err() == nil {
		fmt.Fprintf(f.messages, "Waiting for garden %s: %s\n", f.session.garden.Name, oneLine(err.Error()))
	}
	f.lost = true
}

// catchUp prints all objects the first time, and later those that differ from what was printed.
func (f *follower) catchUp(objects []client.Object) error {
	if f.known == nil {
		f.known = map[client.ObjectKey]printed{}
		for _, object := range objects {
			f.note(object)
		}
		return f.printAll(objects)
	}
	there := map[client.ObjectKey]bool{}
	for _, object := range objects {
		there[client.ObjectKeyFromObject(object)] = true
		if err := f.changed(object); err != nil {
			return err
		}
	}
	var missing []client.Object
	for key, last := range f.known {
		if !there[key] {
			missing = append(missing, last.object)
		}
	}
	slices.SortFunc(missing, byName)
	for _, object := range missing {
		if err := f.gone(object); err != nil {
			return err
		}
	}
	return nil
}

// changes prints what changes after a version of the list, and goes on after lost connections. It ends without an error
// when the garden has forgotten the version, so that all has to be listed again.
func (f *follower) changes(ctx context.Context, version string) error {
	// What the watcher would log is told by open.
	quiet, cancel := context.WithCancel(klog.NewContext(ctx, logr.Discard()))
	defer cancel()
	watcher := &toolscache.ListWatch{WatchFuncWithContext: f.open}
	events, err := watchtools.NewRetryWatcherWithContext(quiet, version, watcher)
	if err != nil {
		return err
	}
	defer func() {
		events.Stop()
		<-events.Done()
	}()
	for event := range events.ResultChan() {
		again, err := f.handle(event)
		if again || err != nil {
			return err
		}
	}
	return nil
}

// open begins a watch, or begins it again.
func (f *follower) open(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	selection, err := f.selection(ctx)
	if err != nil {
		f.tellLost(ctx, err)
		return nil, err
	}
	selection.Raw = &options
	events, err := f.session.watches.Watch(ctx, f.kind.newList(), selection)
	switch {
	case err == nil:
		f.lost = false
	case apierrors.IsGone(err) || apierrors.IsResourceExpired(err):
		return expired(), nil
	case !isRefusal(err):
		f.tellLost(ctx, err)
	}
	return events, err
}

// expired is the watch of a version that the garden has forgotten. The watcher tries again after errors that are not
// events.
func expired() watch.Interface {
	events := make(chan watch.Event, 1)
	events <- watch.Event{Type: watch.Error, Object: &apierrors.NewResourceExpired("").ErrStatus}
	return watch.NewProxyWatcher(events)
}

// handle prints an event; again says that all has to be listed again.
func (f *follower) handle(event watch.Event) (again bool, err error) {
	if event.Type == watch.Error {
		if cause := apierrors.FromObject(event.Object); isRefusal(cause) {
			return false, fmt.Errorf("watching %s: %w", f.kind.plural, cause)
		}
		return true, nil
	}
	object, ok := event.Object.(client.Object)
	if !ok {
		return true, nil
	}
	if event.Type == watch.Deleted {
		return false, f.gone(object)
	}
	return false, f.changed(object)
}

// note remembers an object as it is printed, and says whether that differs from what was printed before.
func (f *follower) note(object client.Object) (differs bool) {
	key := client.ObjectKeyFromObject(object)
	text := object.GetResourceVersion()
	if f.options.value == "" || f.options.value == formatWide {
		text = strings.Join(f.shown(object), "\t")
	}
	last, known := f.known[key]
	f.known[key] = printed{object: object, text: text}
	return !known || last.text != text
}

func (f *follower) changed(object client.Object) error {
	if !f.note(object) {
		return nil
	}
	return f.printOne(object, false)
}

// gone prints an object that was deleted, or that is not selected any more.
func (f *follower) gone(object client.Object) error {
	key := client.ObjectKeyFromObject(object)
	if _, known := f.known[key]; !known {
		return nil
	}
	delete(f.known, key)
	return f.printOne(object, true)
}
