package live

import (
	"context"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
)

const (
	// kept changes let a page go on after a short loss without a new list.
	keptChanges = 200
	keptBytes   = 256 << 10
	// keptOfAll bounds what all watches keep. With more they keep less.
	keptOfAll = 16 << 20
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
	// kept is how many bytes all of them keep.
	kept     int64
	rendered renderings
	// outdated is told of a source whose version the cluster has forgotten.
	outdated func(key string, version uint64)
}

// feed is a watch and who hears of it. It ends with the last of them.
type feed struct {
	key     string
	source  source
	cluster *clusters.Cluster
	user    string
	feeds   *feeds
	stop    context.CancelFunc

	// claimed tells that a page said from which version on it is. Only pages that say the same share it, until the
	// cluster tells of a later one.
	claimed bool
	// floor is the version after which all changes are known here; latest is the newest known.
	floor, latest uint64
	kept          []change
	keptBytes     int64
	synced        time.Time
	subscriptions map[*subscription]bool
	broken        bool
}

// attach has a subscription hear of all changes after a version. It is false if not all of them are known. A version
// that the page claims to know, and not a list of the cluster, says nothing to others.
func (f *feeds) attach(s *subscription, cluster *clusters.Cluster, version uint64, claimed bool, total *int) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if s.ended() {
		return true
	}
	of := f.feedFor(s, cluster, version, claimed)
	if version < of.floor {
		return false
	}
	s.since, s.feed = version, of
	s.sync(max(version, of.versionFor(version)), total)
	for _, c := range of.kept {
		s.tell(c)
	}
	of.subscriptions[s] = true
	return true
}

// feedFor gives the watch that knows all changes after a version, or begins one there.
func (f *feeds) feedFor(s *subscription, cluster *clusters.Cluster, version uint64, claimed bool) *feed {
	key := sharedKey(cluster, s.source)
	of, found := f.open[key]
	if claimed && (!found || version < of.floor) {
		key += " " + strconv.FormatUint(version, 10)
		of, found = f.open[key]
	}
	if found {
		return of
	}
	ctx, cancel := context.WithCancel(context.Background())
	of = &feed{
		key: key, source: s.source, cluster: cluster, user: s.socket.user, feeds: f, stop: cancel, claimed: claimed,
		floor: version, latest: version, subscriptions: map[*subscription]bool{}, synced: time.Now(),
	}
	f.open[key] = of
	go of.run(ctx)
	return of
}

func sharedKey(cluster *clusters.Cluster, of source) string {
	return cluster.Credential + " " + of.String()
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
	for _, c := range f.kept {
		f.release(c.item)
	}
	f.kept = nil
	if f.feeds.open[f.key] == f {
		delete(f.feeds.open, f.key)
	}
}

// run watches until the feed ends.
func (f *feed) run(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		begun := time.Now()
		err := f.source.watch(ctx, f.cluster, watching{
			user: f.user, version: f.version(), begun: f.mended, known: &f.feeds.rendered,
		}, func(c change) { f.tell(ctx, c) })
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
func (f *feed) tell(ctx context.Context, c change) {
	f.feeds.mutex.Lock()
	defer f.feeds.mutex.Unlock()
	if ctx.Err() != nil {
		return // It has ended, and keeps nothing any more.
	}
	if f.claimed && c.version > f.floor {
		f.share()
	}
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

// share lets others join: the cluster has told of a later version than the one that a page claimed.
func (f *feed) share() {
	f.claimed = false
	key := sharedKey(f.cluster, f.source)
	if _, found := f.feeds.open[key]; found {
		return
	}
	delete(f.feeds.open, f.key)
	f.key = key
	f.feeds.open[key] = f
}

func (f *feed) keep(c change) {
	f.kept = append(f.kept, c)
	f.hold(c.item)
	for len(f.kept) > keptChanges || len(f.kept) > 0 && (f.keptBytes > keptBytes || f.feeds.kept > keptOfAll) {
		f.floor = max(f.floor, f.kept[0].version)
		f.release(f.kept[0].item)
		f.kept[0] = change{}
		f.kept = f.kept[1:]
	}
}

// hold counts an item that is kept. One that several watches keep is there once.
func (f *feed) hold(i *item) {
	f.keptBytes += i.size()
	if i.holders++; i.holders == 1 {
		f.feeds.kept += i.size()
	}
}

func (f *feed) release(i *item) {
	f.keptBytes -= i.size()
	if i.holders--; i.holders == 0 {
		f.feeds.kept -= i.size()
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
		f.feeds.outdated(f.source.String(), f.latest)
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
			s.fail(f.cluster.Told(err), false)
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
