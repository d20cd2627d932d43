package trellisctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// playedWatches are what a garden answers: a list for each time that is asked for one, and what it tells to each watch.
// It ends the command when nothing is left.
type playedWatches struct {
	mu      sync.Mutex
	lists   []answer
	watches []answer
	// from are the versions from which watches were asked for.
	from []string
	end  context.CancelFunc
}

// answer is one to a list or to a watch.
type answer struct {
	err     error
	shoots  []gardencorev1beta1.Shoot
	version string
	events  []watch.Event
}

func (s *playedWatches) next(answers *[]answer) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(*answers) == 0 {
		s.end()
		return answer{err: context.Canceled}
	}
	first := (*answers)[0]
	*answers = (*answers)[1:]
	return first
}

func (s *playedWatches) functions() interceptor.Funcs {
	return interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			shoots, ok := list.(*gardencorev1beta1.ShootList)
			if !ok {
				return c.List(ctx, list, options...)
			}
			now := s.next(&s.lists)
			shoots.Items, shoots.ResourceVersion = now.shoots, now.version
			return now.err
		},
		Watch: func(_ context.Context, _ client.WithWatch, _ client.ObjectList,
			options ...client.ListOption) (watch.Interface, error) {
			var asked client.ListOptions
			asked.ApplyOptions(options)
			s.mu.Lock()
			s.from = append(s.from, asked.Raw.ResourceVersion)
			s.mu.Unlock()
			now := s.next(&s.watches)
			if now.err != nil {
				return nil, now.err
			}
			events := make(chan watch.Event, len(now.events))
			for _, event := range now.events {
				events <- event
			}
			close(events)
			return watch.NewProxyWatcher(events), nil
		},
	}
}

// at is a shoot of one version, whose operation is so far.
func at(name, version string, progress int32) *gardencorev1beta1.Shoot {
	s := shoot("garden-demo", name, "local")
	s.ResourceVersion = version
	s.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: "Create", State: "Processing", Progress: progress}
	return s
}

// followed runs a watch of shoots against played watches, and returns what it prints and tells.
func followed(t *testing.T, s *playedWatches, options listing) (printed []string, messages string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s.end = cancel
	garden := session(t, Target{}, s.functions())
	var out, told bytes.Buffer
	f := &follower{lister: listed(garden, shootKind, &options, &out), messages: &told, retry: time.Millisecond}
	err = f.run(ctx)
	return lines(t, &out, nil), told.String(), err
}

func changedTo(kind watch.EventType, object *gardencorev1beta1.Shoot) watch.Event {
	return watch.Event{Type: kind, Object: object}
}

func listOf(version string, shoots ...*gardencorev1beta1.Shoot) answer {
	list := answer{version: version}
	for _, one := range shoots {
		list.shoots = append(list.shoots, *one)
	}
	return list
}

const watchHeader = "SHOOT PROJECT SEED PROVIDER VERSION NODES LAST OPERATION STATUS AGE"

func watchedRow(name string, progress int, last string) string {
	return fmt.Sprintf("%s demo local local 1.36.3 none Create Processing (%d%%) - %s", name, progress, last)
}

// A watch that is cut goes on at the version that it has seen last. What no column shows makes no line.
func TestWatchGoesOnAfterACut(t *testing.T) {
	s := &playedWatches{
		lists: []answer{listOf("5", at("one", "3", 10))},
		watches: []answer{
			{events: []watch.Event{
				changedTo(watch.Modified, at("one", "6", 20)), changedTo(watch.Modified, at("one", "7", 20)),
			}},
			{err: errors.New("connection\trefused")},
			{events: []watch.Event{
				changedTo(watch.Added, at("two", "8", 0)), changedTo(watch.Deleted, at("one", "9", 20)),
			}},
		},
	}
	got, messages, err := followed(t, s, listing{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	check(t, "rows", got, []string{
		watchHeader, watchedRow("one", 10, "60m"), watchedRow("one", 20, "60m"), watchedRow("two", 0, "60m"),
		watchedRow("one", 20, "gone"),
	})
	check(t, "versions", s.from, []string{"5", "7", "7", "9"})
	if messages != "Waiting for garden local: connection refused\n" {
		t.Errorf("told %q", messages)
	}
}

// Where the garden has forgotten the version, all is listed again, and what is not new makes no line.
func TestWatchListsAgain(t *testing.T) {
	gone := apierrors.NewResourceExpired("too old")
	for name, expiring := range map[string]answer{
		"told by an event": {events: []watch.Event{{Type: watch.Error, Object: &gone.ErrStatus}}},
		"told at once":     {err: gone},
	} {
		s := &playedWatches{
			lists: []answer{
				listOf("5", at("one", "3", 10), at("three", "4", 0), at("two", "4", 0)),
				{err: errors.New("timeout")}, listOf("20", at("four", "19", 1), at("one", "3", 10), at("two", "18", 30)),
			},
			watches: []answer{expiring},
		}
		got, messages, err := followed(t, s, listing{})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got error %v", name, err)
		}
		check(t, name, got, []string{
			watchHeader, watchedRow("one", 10, "60m"), watchedRow("three", 0, "60m"), watchedRow("two", 0, "60m"),
			watchedRow("four", 1, "60m"), watchedRow("two", 30, "60m"), watchedRow("three", 0, "gone"),
		})
		check(t, name, s.from, []string{"5", "20"})
		if messages != "Waiting for garden local: listing shoots: timeout\n" {
			t.Errorf("%s: told %q", name, messages)
		}
	}
}

// Names and documents come for every version, and none twice.
func TestWatchOfNames(t *testing.T) {
	const one = "shoot.core.gardener.cloud/one"
	s := &playedWatches{
		lists: []answer{listOf("5", at("one", "3", 10))},
		watches: []answer{{events: []watch.Event{
			changedTo(watch.Added, at("one", "3", 10)), changedTo(watch.Modified, at("one", "6", 10)),
			changedTo(watch.Deleted, at("one", "7", 10)), changedTo(watch.Deleted, at("one", "7", 10)),
		}}},
	}
	got, _, err := followed(t, s, listing{formatFlag: formatFlag{value: formatName}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	check(t, "names", got, []string{one, one, one + " gone"})
}

// What the garden refuses ends a watch, and so does a garden that did not answer even once.
func TestWatchEnds(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "shoots"}, "", errors.New("no member"))
	for name, s := range map[string]*playedWatches{
		"no list":        {lists: []answer{{err: forbidden}}},
		"no watch":       {lists: []answer{listOf("5")}, watches: []answer{{err: forbidden}}},
		"not any more":   {lists: []answer{listOf("5"), {err: forbidden}}, watches: []answer{{err: expiredNow()}}},
		"does not reply": {lists: []answer{{err: errors.New("connection refused")}}},
	} {
		_, _, err := followed(t, s, listing{})
		if err == nil || errors.Is(err, context.Canceled) || apierrors.IsForbidden(err) != (name != "does not reply") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

func expiredNow() error { return apierrors.NewResourceExpired("too old") }
