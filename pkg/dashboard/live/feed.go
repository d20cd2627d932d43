package live

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
)

const (
	// kept changes let a page go on after a short loss without a new list.
	keptChanges = 200
	keptBytes   = 256 << 10
	// syncEvery tells pages of newer versions although nothing changed.
	syncEvery = time.Minute
	// firstPause and longestPause lie between attempts to reach a cluster.
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
)

// feeds are the watches that are open, each for what is watched and by whom.
type feeds struct {
	mutex sync.Mutex
	open  map[string]*feed
}

// feed is a watch and who hears of it. It ends with the last of them.
type feed struct {
	key     string
	source  source
	cluster *clusters.Cluster
	feeds   *feeds
	stop    context.CancelFunc

	// floor is the version after which all changes are known here; latest is the newest known.
	floor, latest uint64
	kept          []change
	keptBytes     int
	synced        time.Time
	subscriptions map[*subscription]bool
	broken        bool
}

// attach has a subscription hear of all changes after a version. It is false if not all of them are known.
func (f *feeds) attach(s *subscription, cluster *clusters.Cluster, version uint64, total *int) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	key := cluster.Credential + " " + s.source.String()
	of, found := f.open[key]
	if !found {
		of = &feed{
			key: key, source: s.source, cluster: cluster, feeds: f, floor: version, latest: version,
			subscriptions: map[*subscription]bool{}, synced: time.Now(),
		}
		ctx, cancel := context.WithCancel(context.Background())
		of.stop = cancel
		f.open[key] = of
		go of.run(ctx)
	}
	if version < of.floor || s.ended() {
		of.leave(nil)
		return s.ended()
	}
	s.since, s.feed = version, of
	s.sync(max(version, of.versionFor(version)), total)
	for _, c := range of.kept {
		s.tell(c)
	}
	of.subscriptions[s] = true
	return true
}

// versionFor is what a page that knows a version knows, too: nothing more than that while changes follow.
func (f *feed) versionFor(version uint64) uint64 {
	for _, c := range f.kept {
		if c.version > version {
			return version
		}
	}
	return f.latest
}

// detach ends the hearing.
func (f *feeds) detach(s *subscription) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if s.feed != nil {
		s.feed.leave(s)
		s.feed = nil
	}
}

// leave ends the watch with its last subscription.
func (f *feed) leave(s *subscription) {
	delete(f.subscriptions, s)
	if len(f.subscriptions) == 0 {
		f.end()
	}
}

func (f *feed) end() {
	f.stop()
	if f.feeds.open[f.key] == f {
		delete(f.feeds.open, f.key)
	}
}

// run watches until the feed ends.
func (f *feed) run(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		begun := time.Now()
		err := f.source.watch(ctx, f.cluster, f.version(), f.mended, f.tell)
		if ctx.Err() != nil || err != nil && f.failed(err) {
			return
		}
		if err == nil && time.Since(begun) > time.Second {
			pause = firstPause
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

func (f *feed) version() uint64 {
	f.feeds.mutex.Lock()
	defer f.feeds.mutex.Unlock()
	return f.latest
}

// tell passes a change on, and keeps it for a while.
func (f *feed) tell(c change) {
	f.feeds.mutex.Lock()
	defer f.feeds.mutex.Unlock()
	f.latest = max(f.latest, c.version)
	if c.item == nil {
		if time.Since(f.synced) > syncEvery {
			f.sync()
		}
		return
	}
	f.keep(c)
	for s := range f.subscriptions {
		s.tell(c)
	}
}

func (f *feed) keep(c change) {
	f.kept = append(f.kept, c)
	f.keptBytes += len(c.item.text)
	for len(f.kept) > keptChanges || f.keptBytes > keptBytes && len(f.kept) > 1 {
		f.floor = max(f.floor, f.kept[0].version)
		f.keptBytes -= len(f.kept[0].item.text)
		f.kept[0] = change{}
		f.kept = f.kept[1:]
	}
}

func (f *feed) sync() {
	f.synced = time.Now()
	for s := range f.subscriptions {
		s.sync(f.latest, nil)
	}
}

// mended tells pages that were told of an error.
func (f *feed) mended() {
	f.feeds.mutex.Lock()
	defer f.feeds.mutex.Unlock()
	if f.broken {
		f.broken = false
		f.sync()
	}
}

// failed decides about an error; true if the feed has ended.
func (f *feed) failed(err error) bool {
	f.feeds.mutex.Lock()
	defer f.feeds.mutex.Unlock()
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), isRotated(err, f.source):
		f.end()
		for s := range f.subscriptions {
			s.feed = nil
			s.restart()
		}
		return true
	case isFinal(err):
		f.end()
		for s := range f.subscriptions {
			s.feed = nil
			s.fail(err, true)
		}
		return true
	}
	if !f.broken {
		f.broken = true
		for s := range f.subscriptions {
			s.fail(err, false)
		}
	}
	return false
}

// isRotated tells whether a shoot does not take its credential any more, for which the garden gives another one.
func isRotated(err error, of source) bool {
	return of.cluster != clusters.Garden && clusters.IsLoggedOut(err)
}

// isFinal tells whether trying again is of no use.
func isFinal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsInvalid(err) || apierrors.IsMethodNotSupported(err) || clusters.IsLoggedOut(err) ||
		apierrors.IsNotAcceptable(err)
}
