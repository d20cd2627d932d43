package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
)

// subscription is what a page wants to know.
type subscription struct {
	id     string
	source source
	filter filter
	socket *socket
	ctx    context.Context
	cancel context.CancelFunc
	over   atomic.Bool

	// feed and since are the feeds' to change.
	feed  *feed
	since uint64
}

// begin lists, unless the page knows a version already, and hears of changes from then on. It does not wait for them.
func (s *subscription) begin(version uint64) {
	pause := firstPause
	for !s.ended() {
		cluster, err := s.socket.resolve(s.ctx, s.source.cluster)
		if err == nil {
			var done bool
			if done, err = s.follow(cluster, version); done {
				return
			}
		}
		version = 0
		switch {
		case err == nil, apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			continue
		case isRotated(err, s.source):
			if cluster != nil {
				s.socket.clusters.Forget(cluster)
			}
		case isFinal(err):
			s.fail(err, true)
			return
		}
		s.fail(err, false)
		select {
		case <-s.ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// follow is true if the subscription hears of changes, or has ended.
func (s *subscription) follow(cluster *clusters.Cluster, version uint64) (bool, error) {
	if version != 0 && s.socket.feeds.attach(s, cluster, version, nil) {
		return true, nil
	}
	if s.socket.listing.Acquire(s.ctx, 1) != nil {
		return true, nil
	}
	defer s.socket.listing.Release(1)
	reading := slot{of: s.socket.lists}
	defer reading.give()
	if reading.take(s.ctx) != nil {
		return true, nil
	}
	first, total := true, 0
	version, err := s.source.list(s.ctx, cluster, func(items []*item) error {
		reading.give() // A browser that does not read holds up nobody else.
		sent, err := s.snapshot(items, first)
		first, total = false, total+sent
		if err != nil {
			return err
		}
		return reading.take(s.ctx)
	})
	if err != nil {
		return s.ended(), err
	}
	return s.socket.feeds.attach(s, cluster, version, &total), nil
}

// slot is the right to read a part of a list.
type slot struct {
	of    *semaphore.Weighted
	taken bool
}

func (s *slot) take(ctx context.Context) error {
	err := s.of.Acquire(ctx, 1)
	s.taken = err == nil
	return err
}

func (s *slot) give() {
	if s.taken {
		s.of.Release(1)
	}
	s.taken = false
}

// snapshot sends a part of the list. It waits while the page does not keep up.
func (s *subscription) snapshot(items []*item, first bool) (int, error) {
	var text bytes.Buffer
	fmt.Fprintf(&text, `{"id":%q,"type":"snapshot","first":%t,"items":[`, s.id, first)
	sent := 0
	for _, i := range items {
		if !s.filter.matches(i) {
			continue
		}
		if sent > 0 {
			text.WriteByte(',')
		}
		text.Write(i.text)
		sent++
	}
	text.WriteString("]}")
	return sent, s.socket.queue.wait(s.ctx, text.Bytes())
}

// tell sends a change that the page does not know yet.
func (s *subscription) tell(c change) {
	if c.version != 0 && c.version <= s.since || s.ended() {
		return
	}
	kind, item := c.kind, c.item.text
	if kind != kindDeleted && !s.filter.matches(c.item) {
		kind = kindDeleted // The page may show it as it was before.
	}
	if kind == kindDeleted {
		item = c.item.identity()
	}
	s.socket.push(fmt.Appendf(nil, `{"id":%q,"type":%q,"resourceVersion":"%d","item":%s}`, s.id, kind, c.version, item))
}

// sync tells that the page knows everything up to a version.
func (s *subscription) sync(version uint64, total *int) {
	if s.ended() {
		return
	}
	counted := ""
	if total != nil {
		counted = fmt.Sprintf(`,"total":%d`, *total)
	}
	s.socket.push(fmt.Appendf(nil, `{"id":%q,"type":"sync","resourceVersion":"%d"%s}`, s.id, version, counted))
}

// fail tells of an error.
func (s *subscription) fail(err error, final bool) {
	if s.ended() {
		return
	}
	s.socket.pushError(s.id, err, final)
	if final {
		s.end()
	}
	if final && clusters.IsLoggedOut(err) && s.source.cluster == clusters.Garden {
		go s.socket.close(CodeLoggedOut, "the garden does not accept the credential any more")
	}
}

// restart lists anew.
func (s *subscription) restart() { go s.begin(0) }

func (s *subscription) end() {
	s.over.Store(true)
	s.cancel()
}

func (s *subscription) ended() bool { return s.over.Load() }

// errorText is a message about an error.
func errorText(id string, err error, final bool) []byte {
	text, failure := json.Marshal(map[string]any{
		"id": id, "type": "error", "error": reply.StatusOf(err), "final": final,
	})
	if failure != nil {
		panic(failure) // A Status can be written.
	}
	return text
}
