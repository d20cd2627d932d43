package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

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
	// retries of begin, which runs once at a time.
	retries retries
	// alone says that the next list is not to be one that others have.
	alone bool

	// feed and since are the feeds' to change.
	feed  *feed
	since uint64
}

// retries are attempts to follow a cluster, further apart each time.
type retries struct {
	last  time.Time
	pause time.Duration
}

// wait until it is time for the next attempt; false if the context ends before. The first one is at once, as is one
// long after those before.
func (r *retries) wait(ctx context.Context) bool {
	since := time.Since(r.last)
	switch {
	case since > 2*longestPause:
		r.pause = 0
	case r.pause == 0:
		r.pause = firstPause
	default:
		r.pause = min(2*r.pause, longestPause)
	}
	if rest := r.pause - since; r.pause > 0 && rest > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
	}
	r.last = time.Now()
	return ctx.Err() == nil
}

// begin lists, unless the page says that it knows a version already, and hears of changes from then on. It does not
// wait for them.
func (s *subscription) begin(claim uint64) {
	for s.retries.wait(s.ctx) && !s.ended() {
		cluster, err := s.socket.resolve(s.ctx, s.source.cluster)
		if err == nil {
			var done bool
			if done, err = s.follow(cluster, claim); done {
				return
			}
		}
		claim = 0
		switch {
		case err == nil, apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			continue
		case isRotated(err, s.source):
			if cluster != nil {
				err = s.socket.clusters.Failed(cluster, err)
			}
		case isFinal(err):
			s.fail(err, true)
			return
		}
		s.fail(err, false)
	}
}

// follow is true if the subscription hears of changes, or has ended.
func (s *subscription) follow(cluster *clusters.Cluster, claim uint64) (bool, error) {
	if claim != 0 && s.socket.feeds.attach(s, cluster, claim, true, nil) {
		return true, nil
	}
	if s.socket.listing.Acquire(s.ctx, 1) != nil {
		return true, nil
	}
	defer s.socket.listing.Release(1)
	version, total, err := s.list(cluster)
	if err != nil {
		return s.ended(), err
	}
	attached := s.socket.feeds.attach(s, cluster, version, false, &total)
	s.alone = !attached // What others have may be older than what is known here.
	return attached, nil
}

// list gives the page the list: one that others have as well, or one of its own.
func (s *subscription) list(cluster *clusters.Cluster) (version uint64, total int, err error) {
	for range sharedAttempts {
		if s.alone || !s.isShared() {
			break
		}
		if version, total, err = s.listShared(cluster); !errors.Is(err, errAlone) {
			return version, total, err
		}
	}
	first := true
	total = 0
	version, err = s.source.list(s.ctx, cluster, listing{
		user: s.socket.user, keep: s.filter.matches,
		page: func(items []*item) error {
			err := s.snapshot(items, first)
			first, total = false, total+len(items)
			return err
		},
	})
	return version, total, err
}

// sharedAttempts are made to have a list with others: who reads it may go away, and the next one reads it then.
const sharedAttempts = 2

// messageSize is where a message to a browser ends, unless a single object is larger.
const messageSize = 512 << 10

// snapshot sends items of the list, in one part at least.
func (s *subscription) snapshot(items []*item, first bool) error {
	for begun := false; len(items) > 0 || !begun; begun = true {
		var text []byte
		text, items = joined(items)
		if err := s.send(message{text: slices.Concat(s.beginOf(first && !begun), text, endOfPart)}); err != nil {
			return err
		}
	}
	return nil
}

// part sends items of a list that others have as well.
func (s *subscription) part(items []byte, first bool) error {
	return s.send(message{text: s.beginOf(first), shared: items, end: endOfPart})
}

func (s *subscription) beginOf(first bool) []byte {
	return fmt.Appendf(nil, `{"id":%q,"type":"snapshot","first":%t,"items":[`, s.id, first)
}

var endOfPart = []byte("]}")

// send waits while the page does not keep up, but not for ever.
func (s *subscription) send(m message) error {
	ctx, cancel := context.WithTimeout(s.ctx, longestPage)
	defer cancel()
	err := s.socket.queue.wait(ctx, m)
	if errors.Is(err, context.DeadlineExceeded) {
		go s.socket.close(CodeTooSlow, "the browser does not keep up")
	}
	return err
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

// helloText tells a page whose connection it has: the browser's session may be another one than the page knows.
func helloText(user string) []byte {
	text, failure := json.Marshal(map[string]string{"type": "hello", "user": user})
	if failure != nil {
		panic(failure) // Text can be written.
	}
	return text
}
