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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/proxy"
)

const (
	pageSize = 500
	// objectsPageSize is for whole objects.
	objectsPageSize = 50
	// maxPage and maxEvent bound what is read of a cluster, which may be hostile.
	maxPage  = 64 << 20
	maxEvent = 8 << 20
)

// errTooLarge ends what would not end by itself.
var errTooLarge = errors.New("the cluster's answer is too large")

// bounded reads until its budget is spent. The budget may be given again.
type bounded struct {
	source io.Reader
	left   int
}

// Read implements io.Reader.
func (b *bounded) Read(into []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.source.Read(into[:min(len(into), b.left)])
	b.left -= n
	return n, err
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

// list reads all objects, and gives them page by page. The version is that of the list.
func (s source) list(ctx context.Context, cluster *clusters.Cluster, page func([]*item) error) (uint64, error) {
	query := s.query()
	size := pageSize
	if s.view == ViewObject {
		size = objectsPageSize
	}
	query.Set("limit", strconv.Itoa(size))
	for {
		body, err := s.open(ctx, cluster, query)
		if err != nil {
			return 0, err
		}
		items, meta, err := s.readPage(body)
		_ = body.Close()
		if err != nil {
			return 0, err
		}
		if err := page(items); err != nil {
			return 0, err
		}
		if meta.Continue == "" {
			return parseVersion(meta.ResourceVersion), nil
		}
		query.Set("continue", meta.Continue)
	}
}

// readPage reads a list object by object, so that none is held but as its item.
func (s source) readPage(body io.Reader) (items []*item, meta metav1.ListMeta, err error) {
	decoder := json.NewDecoder(&bounded{source: body, left: maxPage})
	if err := expect(decoder, '{'); err != nil {
		return nil, meta, err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, meta, err
		}
		switch key {
		case "metadata":
			err = decoder.Decode(&meta)
		case "items":
			items, err = s.readItems(decoder)
		default:
			var other json.RawMessage
			err = decoder.Decode(&other)
		}
		if err != nil {
			return nil, meta, err
		}
	}
	return items, meta, expect(decoder, '}')
}

func (s source) readItems(decoder *json.Decoder) ([]*item, error) {
	first, err := decoder.Token()
	if err != nil || first == nil { // null: there are none.
		return nil, err
	}
	if first != json.Delim('[') {
		return nil, errors.New("items of the list are no array")
	}
	var items []*item
	var object json.RawMessage
	for decoder.More() {
		if err := decoder.Decode(&object); err != nil {
			return nil, err
		}
		i, err := s.render(object)
		if err != nil {
			return nil, err
		}
		items = append(items, i)
	}
	return items, expect(decoder, ']')
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

// watch reads changes after a version until the stream ends, which it does from time to time without an error.
func (s source) watch(ctx context.Context, cluster *clusters.Cluster, version uint64, begun func(),
	tell func(change)) error {
	query := s.query()
	query.Set("watch", "true")
	query.Set("allowWatchBookmarks", "true")
	query.Set("resourceVersion", strconv.FormatUint(version, 10))
	body, err := s.open(ctx, cluster, query)
	if err != nil {
		return err
	}
	defer body.Close()
	begun()
	reader := &bounded{source: body}
	decoder := json.NewDecoder(reader)
	for {
		reader.left = maxEvent
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
		c, err := s.changeOf(read.Type, read.Object)
		if err != nil {
			return err
		}
		tell(c)
	}
}

func (s source) changeOf(kind string, object json.RawMessage) (change, error) {
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
	i, err := s.render(object)
	if err != nil {
		return change{}, err
	}
	known, found := kinds[kind]
	if !found {
		return change{}, fmt.Errorf("the cluster tells of an event of type %.20q", kind)
	}
	return change{kind: known, version: parseVersion(i.version), item: i}, nil
}
