package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/limits"
	"github.com/trellis-garden/trellis/pkg/dashboard/proxy"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
)

const (
	mostInPage = 500
	// mostObjectsInPage is for whole objects.
	mostObjectsInPage = 50
	// firstHold is the memory that a page of a list may take. Where objects are large, pages have fewer; a single one
	// may take mostHold.
	firstHold = 1 << 20
	mostHold  = 16 << 20
	// copies of an object are in memory while it is read: in the decoder's buffer, which doubles, by itself, and as
	// what is made of it.
	copies = 4
	// smallEvent is what each watch may hold; maxEvent, one that has taken memory for it.
	smallEvent = 16 << 10
	maxEvent   = mostHold / copies
	// patience is how long a cluster may send nothing while something is read of it; longestPage, how long a page may
	// take in all.
	patience    = 30 * time.Second
	longestPage = 2 * time.Minute
)

var (
	// errTooLarge ends what would not end by itself.
	errTooLarge = errors.New("the cluster's answer is too large")
	// errSilent ends what does not go on.
	errSilent = reply.Error(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
		"the cluster did not send what it was asked for in time")
)

// bounded reads until its budget is spent, unless it gets more.
type bounded struct {
	source io.Reader
	left   int
	// more, if there is one, is asked for a further budget.
	more func() (int, error)
	// heard is told of what was read.
	heard func()
}

// Read implements io.Reader.
func (b *bounded) Read(into []byte) (int, error) {
	if b.left <= 0 && b.more != nil {
		more, err := b.more()
		if err != nil {
			return 0, err
		}
		b.left = more
	}
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.source.Read(into[:min(len(into), b.left)])
	b.left -= n
	if n > 0 && b.heard != nil {
		b.heard()
	}
	return n, err
}

// deadline ends a context when nothing is heard for a while, or after some time in any case.
type deadline struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timers [2]*time.Timer
}

func newDeadline(ctx context.Context) *deadline {
	d := &deadline{}
	d.ctx, d.cancel = context.WithCancelCause(ctx)
	silent := func() { d.cancel(errSilent) }
	d.timers = [2]*time.Timer{time.AfterFunc(patience, silent), time.AfterFunc(longestPage, silent)}
	return d
}

func (d *deadline) heard() { d.timers[0].Reset(patience) }

// end frees what it holds, and says whether an error is that of the deadline.
func (d *deadline) end(err error) error {
	for _, timer := range d.timers {
		timer.Stop()
	}
	cause := context.Cause(d.ctx)
	d.cancel(nil)
	if err != nil && errors.Is(cause, errSilent) {
		return errSilent
	}
	return err
}

// accept asks for no more of objects than the view shows.
func (s source) accept() string {
	if s.view == ViewMeta || proxy.IsSecret(s.group, s.resource) {
		return "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
			"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	}
	return "application/json"
}

func (s source) query() url.Values {
	query := url.Values{}
	if s.labels != "" {
		query.Set("labelSelector", s.labels)
	}
	if s.fields != "" {
		query.Set("fieldSelector", s.fields)
	}
	return query
}

// open asks a cluster for a list or a watch.
func (s source) open(ctx context.Context, cluster *clusters.Cluster, query url.Values) (io.ReadCloser, error) {
	path, err := proxy.ParsePath(s.path())
	if err != nil {
		return nil, err
	}
	response, err := cluster.Open(ctx, http.MethodGet, path.String(), query, nil, s.accept())
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// pace of reading a list: how many objects a page is asked for, and what they may take of memory.
type pace struct {
	size, most int
	hold       int64
}

func (s source) pace() *pace {
	if s.view == ViewObject {
		return &pace{size: mostObjectsInPage, most: mostObjectsInPage, hold: firstHold}
	}
	return &pace{size: mostInPage, most: mostInPage, hold: firstHold}
}

// less is for a page that was too large when it had so many objects. It is false if nothing is left to try.
func (p *pace) less(fitted int) bool {
	if p.size > 1 && fitted < p.size {
		p.size = max(1, min(fitted, p.size/2))
		return true
	}
	p.hold *= 2 // One object alone, or the cluster does not care how many it is asked for.
	return p.hold <= mostHold
}

// more is for the page after one that took so much.
func (p *pace) more(held int64) {
	if copies*held <= firstHold {
		p.hold = firstHold
	}
	if held < p.hold/4 {
		p.size = min(2*p.size, p.most)
	}
}

// part of a list, as far as it was read.
type part struct {
	items []*item
	meta  metav1.ListMeta
	// objects that were read, and bytes that the items take.
	objects int
	held    int64
}

// listing says what becomes of a list that is read.
type listing struct {
	// user whose share of the memory it takes.
	user string
	// keep tells which items are wanted; nil for all.
	keep func(*item) bool
	// page is given those of a page. They are not held any longer once it returns.
	page func([]*item) error
}

// list reads all objects, page by page. The version is that of the list.
func (s source) list(ctx context.Context, cluster *clusters.Cluster, l listing) (uint64, error) {
	query, pace := s.query(), s.pace()
	for {
		query.Set("limit", strconv.Itoa(pace.size))
		p, taken, err := s.takePage(ctx, cluster, query, pace.hold, l)
		if err != nil {
			if errors.Is(err, errTooLarge) && pace.less(p.objects) {
				continue
			}
			return 0, err
		}
		err = l.page(p.items)
		taken.Give()
		if err != nil {
			return 0, err
		}
		if p.meta.Continue == "" {
			return parseVersion(p.meta.ResourceVersion), nil
		}
		pace.more(p.held)
		query.Set("continue", p.meta.Continue)
	}
}

// takePage reads a page once there is memory for it. What it takes is given back by the caller, if there is no error.
func (s source) takePage(ctx context.Context, cluster *clusters.Cluster, query url.Values, hold int64,
	l listing) (*part, *limits.Taken, error) {
	taken, err := cluster.Memory.Take(ctx, l.user, hold)
	if err != nil {
		return &part{}, nil, err
	}
	d := newDeadline(ctx)
	p, err := s.onePage(d, cluster, query, taken.Size(), l.keep)
	if err = d.end(err); err != nil {
		taken.Give()
		return p, nil, err
	}
	taken.Shrink(p.held)
	return p, taken, nil
}

func (s source) onePage(d *deadline, cluster *clusters.Cluster, query url.Values, hold int64,
	keep func(*item) bool) (*part, error) {
	body, err := s.open(d.ctx, cluster, query)
	if err != nil {
		return &part{}, err
	}
	defer body.Close()
	return s.readPage(&bounded{source: body, heard: d.heard}, hold, keep)
}

// readPage reads a list object by object, so that none is held but as its item.
func (s source) readPage(body *bounded, hold int64, keep func(*item) bool) (*part, error) {
	p := &part{}
	decoder := json.NewDecoder(body)
	body.left = int(hold / copies)
	if err := expect(decoder, '{'); err != nil {
		return p, err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return p, err
		}
		switch key {
		case "metadata":
			err = decoder.Decode(&p.meta)
		case "items":
			err = s.readItems(decoder, p, func() { body.left = int((hold - p.held) / copies) }, keep)
		default:
			var other json.RawMessage
			err = decoder.Decode(&other)
		}
		if err != nil {
			return p, err
		}
	}
	return p, expect(decoder, '}')
}

// readItems reads the objects of a page. Before each of them it is known how large that may be.
func (s source) readItems(decoder *json.Decoder, p *part, next func(), keep func(*item) bool) error {
	first, err := decoder.Token()
	if err != nil || first == nil { // null: there are none.
		return err
	}
	if first != json.Delim('[') {
		return errors.New("items of the list are no array")
	}
	var object json.RawMessage
	for next(); decoder.More(); next() {
		if err := decoder.Decode(&object); err != nil {
			return err
		}
		i, err := s.render(object)
		if err != nil {
			return err
		}
		p.objects++
		if keep == nil || keep(i) {
			i.fields = nil // Only filters look at them.
			p.items = append(p.items, i)
			p.held += i.size()
		}
	}
	return expect(decoder, ']')
}

func expect(decoder *json.Decoder, delimiter json.Delim) error {
	token, err := decoder.Token()
	if err == nil && token != delimiter {
		err = fmt.Errorf("the cluster's answer has %v where %v is expected", token, delimiter)
	}
	return err
}

// parseVersion gives 0 for what is no version. Versions of one kind can be compared since Kubernetes 1.35 says so of
// all API servers, and always could with etcd.
func parseVersion(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// event is a change of an object. Without an item it only tells the version.
type change struct {
	kind    string
	version uint64
	item    *item
}

// Kinds of changes, as pages are told.
const (
	kindAdded   = "added"
	kindChanged = "changed"
	kindDeleted = "deleted"
)

// kinds of what API servers say.
var kinds = map[string]string{"ADDED": kindAdded, "MODIFIED": kindChanged, "DELETED": kindDeleted, "BOOKMARK": ""}

// watching says from where on changes are read.
type watching struct {
	// user whose share of the memory large events take.
	user    string
	version uint64
	// begun is called when the cluster answers.
	begun func()
	// known are what was made of objects; nil for none.
	known *renderings
}

// watch reads changes after a version until the stream ends, which it does from time to time without an error.
func (s source) watch(ctx context.Context, cluster *clusters.Cluster, w watching, tell func(change)) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer func() {
		if cause := context.Cause(ctx); err != nil && errors.Is(cause, errSilent) {
			err = errSilent
		}
		cancel(nil)
	}()
	query := s.query()
	query.Set("watch", "true")
	query.Set("allowWatchBookmarks", "true")
	query.Set("resourceVersion", strconv.FormatUint(w.version, 10))
	body, err := s.open(ctx, cluster, query)
	if err != nil {
		return err
	}
	defer body.Close()
	w.begun()
	return s.readEvents(&stream{
		body: body, memory: cluster.Memory, user: w.user, stop: cancel, known: w.known,
	}, tell)
}

// stream of events, each of which may take memory while it is read.
type stream struct {
	body   io.ReadCloser
	memory *limits.Bytes
	user   string
	stop   context.CancelCauseFunc
	known  *renderings
	size   int
	taken  *limits.Taken
	timer  *time.Timer
}

// grow lets an event be larger, up to a bound, for a while.
func (e *stream) grow() (int, error) {
	if e.size >= maxEvent {
		return 0, errTooLarge
	}
	if e.taken == nil {
		e.taken = e.memory.Nothing(e.user)
		e.timer = time.AfterFunc(patience, func() { e.stop(errSilent) })
	}
	more := min(e.size, maxEvent-e.size)
	e.size += more
	return more, e.taken.Grow(int64(more) * copies)
}

// release what an event took; true if it took any.
func (e *stream) release() bool {
	e.size = smallEvent
	if e.taken == nil {
		return false
	}
	e.timer.Stop()
	e.taken.Give()
	e.taken = nil
	return true
}

func (s source) readEvents(e *stream, tell func(change)) error {
	reader := &bounded{source: e.body, more: e.grow}
	from := io.Reader(reader)
	decoder := json.NewDecoder(from)
	defer e.release()
	for {
		if e.release() { // The decoder would hold as much from now on.
			from = io.MultiReader(decoder.Buffered(), from)
			decoder = json.NewDecoder(from)
		}
		reader.left = smallEvent
		var read struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&read); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return err
		}
		c, err := s.changeOf(read.Type, read.Object, e.known)
		if err != nil {
			return err
		}
		tell(c)
	}
}

func (s source) changeOf(kind string, object json.RawMessage, rendered *renderings) (change, error) {
	if kind == "ERROR" {
		status := metav1.Status{}
		if err := json.Unmarshal(object, &status); err != nil {
			return change{}, err
		}
		return change{}, &apierrors.StatusError{ErrStatus: status}
	}
	if kind == "BOOKMARK" {
		var bookmark struct {
			Metadata metadata `json:"metadata"`
		}
		err := json.Unmarshal(object, &bookmark)
		return change{version: parseVersion(bookmark.Metadata.ResourceVersion)}, err
	}
	i, err := rendered.of(s, object)
	if err != nil {
		return change{}, err
	}
	known, found := kinds[kind]
	if !found {
		return change{}, fmt.Errorf("the cluster tells of an event of type %.20q", kind)
	}
	return change{kind: known, version: parseVersion(i.version), item: i}, nil
}
