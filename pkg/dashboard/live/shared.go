package live

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
)

const (
	// keptList is how long a list that was read is there for others.
	keptList = 10 * time.Second
	// keptLists bounds what all lists take that are there for others. One that does not fit is read by each alone, for
	// as long as longAlone.
	keptLists = 16 << 20
	longAlone = time.Minute
	// stalled is how long others wait for the next part of a list that somebody reads.
	stalled = 10 * time.Second
	// listReader has the share of memory with which lists for several people are read. No user has an empty name.
	listReader = ""
	// proofSize is what is read of an answer that only has to be a good one.
	proofSize = 64 << 10
)

// sharedResources are those of the garden of which whoever may list them is told the same. Projects are not among them:
// everybody may list these, and is told of their own.
var sharedResources = []string{"core.gardener.cloud/shoots"}

// errAlone tells that a list is to be read alone.
var errAlone = errors.New("the list is not there for others")

// isShared tells whether several people may be given one list. Those that are narrowed are short, and of many kinds.
func (s *subscription) isShared() bool {
	of := s.source
	return of.cluster == clusters.Garden && of.view == ViewRow && of.labels == "" && of.fields == "" &&
		len(s.filter) == 0 && slices.Contains(sharedResources, of.group+"/"+of.resource)
}

// lists that somebody reads, or has just read, each with the credential of the first who asked for it.
type lists struct {
	mutex sync.Mutex
	open  map[string]*sharedList
	// held is how many bytes they take.
	held int
}

// sharedList is a list as it comes.
type sharedList struct {
	of    *lists
	key   string
	parts [][]byte
	held  int
	// users are who reads it, or gives it to their page. Until they are gone it takes what it takes.
	users   int
	dropped bool
	total   int
	ended   bool
	err     error
	// version is there with the end.
	version uint64
	// changed is closed, and another takes its place, when there is more.
	changed chan struct{}
}

// enter gives the list of a key; mine says that the caller has to read it.
func (l *lists) enter(key string) (list *sharedList, mine bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	list, found := l.open[key]
	if !found {
		list = &sharedList{of: l, key: key, changed: make(chan struct{})}
		l.open[key] = list
	}
	list.users++
	return list, !found
}

// leave is for who entered.
func (l *sharedList) leave() {
	l.of.mutex.Lock()
	defer l.of.mutex.Unlock()
	l.users--
	l.release()
}

// outdated drops a list with a version after which the garden does not know all changes any more.
func (l *lists) outdated(key string, version uint64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if list, found := l.open[key]; found && list.ended && list.version <= version {
		list.drop()
	}
}

// drop lets nobody else come to a list. Those who have it go on.
func (l *sharedList) drop() {
	if l.of.open[l.key] == l {
		delete(l.of.open, l.key)
	}
	l.dropped = true
	l.release()
}

// release what it takes, if nobody has it any more, or will. One that failed is of no use to those who have it.
func (l *sharedList) release() {
	if l.err != nil || l.dropped && l.users == 0 {
		l.of.held -= l.held
		l.parts, l.held = nil, 0
	}
}

// forget is drop.
func (l *sharedList) forget() {
	l.of.mutex.Lock()
	defer l.of.mutex.Unlock()
	l.drop()
}

// read reads the list for all, with the credential of the first and as long as they want it. It does not wait for
// anybody's browser.
func (l *sharedList) read(ctx context.Context, cluster *clusters.Cluster, s source) {
	l.finish(s.list(ctx, cluster, listing{user: listReader, page: l.add}))
}

// finish tells all that there is no more.
func (l *sharedList) finish(version uint64, err error) {
	l.of.mutex.Lock()
	defer l.of.mutex.Unlock()
	l.version, l.err, l.ended = version, err, true
	close(l.changed)
	switch {
	case err == nil:
		time.AfterFunc(keptList, l.forget)
	case errors.Is(err, errAlone):
		l.release()
		time.AfterFunc(longAlone, l.forget)
	default:
		l.drop()
	}
}

// isAlone tells of one that did not fit.
func (l *sharedList) isAlone() bool {
	l.of.mutex.Lock()
	defer l.of.mutex.Unlock()
	return l.ended && l.err != nil
}

// add makes a page what is sent to browsers.
func (l *sharedList) add(items []*item) error {
	var parts [][]byte
	held, total := 0, len(items)
	for len(items) > 0 || len(parts) == 0 {
		var text []byte
		text, items = joined(items)
		parts, held = append(parts, text), held+len(text)
	}
	l.of.mutex.Lock()
	defer l.of.mutex.Unlock()
	if l.dropped || l.of.held+held > keptLists {
		return errAlone
	}
	l.parts, l.total, l.held = append(l.parts, parts...), l.total+total, l.held+held
	l.of.held += held
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// next waits for a part, for a while. There is none after the last one.
func (l *sharedList) next(ctx context.Context, number int, while time.Duration) (text []byte, more bool, err error) {
	timer := time.NewTimer(while)
	defer timer.Stop()
	for {
		l.of.mutex.Lock()
		changed, ended, failure := l.changed, l.ended, l.err
		if number < len(l.parts) {
			text, more = l.parts[number], true
		}
		l.of.mutex.Unlock()
		if more || ended {
			return text, more, failure // After a failure there are no parts any more.
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-timer.C:
			l.forget()
			return nil, false, errAlone
		}
	}
}

// joined is the text of the first items, as many as fit into a message, and the others.
func joined(items []*item) ([]byte, []*item) {
	var text bytes.Buffer
	for n := 0; len(items) > 0 && (n == 0 || text.Len()+len(items[0].text) < messageSize); n++ {
		if n > 0 {
			text.WriteByte(',')
		}
		text.Write(items[0].text)
		items = items[1:]
	}
	return text.Bytes(), items
}

// listShared gives the page the list that others have as well, once the garden has answered the same question of this
// user. The error is errAlone if it is to be read alone.
func (s *subscription) listShared(cluster *clusters.Cluster) (version uint64, total int, err error) {
	list, mine := s.socket.lists.enter(s.source.String())
	defer list.leave()
	while := stalled
	switch {
	case mine:
		while = longestPage // Reading it ends earlier.
		go list.read(s.ctx, cluster, s.source)
	case list.isAlone():
		return 0, 0, errAlone
	default:
		if err := s.source.prove(s.ctx, cluster); err != nil {
			return 0, 0, err
		}
	}
	for number := 0; ; number++ {
		text, more, err := list.next(s.ctx, number, while)
		switch {
		case err != nil && !mine && s.ctx.Err() == nil:
			return 0, 0, errAlone // What the first one is refused, others are not.
		case err != nil:
			return 0, 0, err
		case !more:
			return list.version, list.total, nil
		}
		if err := s.part(text, number == 0); err != nil {
			return 0, 0, err
		}
	}
}

// prove has the garden say whether the user may have a list: it is asked for it with their credential, and for no more
// than the metadata of one object.
func (s source) prove(ctx context.Context, cluster *clusters.Cluster) error {
	d := newDeadline(ctx)
	query := s.query()
	query.Set("limit", "1")
	s.view = ViewMeta
	body, err := s.open(d.ctx, cluster, query)
	if err == nil {
		_, err = io.CopyN(io.Discard, body, proofSize)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		_ = body.Close() // All that counts has been said.
	}
	return d.end(err)
}
