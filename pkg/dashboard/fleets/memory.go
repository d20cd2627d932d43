package fleets

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/trellis-garden/trellis/pkg/dashboard/limits"
)

const (
	// decoded is how many times the bytes of an answer an object takes of memory, with the answer itself.
	decoded = 3
	// maxDiscovery bounds answers that no question asks for: what kinds a fleet has.
	maxDiscovery = 8 << 20
)

// errDiscovery ends an answer that is no list of kinds.
var errDiscovery = errors.New("the fleet's answer is too large")

// question is what the answers of a fleet take of memory until a page is answered.
type question struct {
	mutex sync.Mutex
	taken *limits.Taken
}

type questionKey struct{}

// withQuestion counts what a user's question takes until done is called.
func withQuestion(ctx context.Context, memory *limits.Bytes, user string) (counting context.Context, done func()) {
	q := &question{taken: memory.Nothing(user)}
	return context.WithValue(ctx, questionKey{}, q), q.done
}

func (q *question) grow(bytes int) error {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.taken.Grow(int64(bytes) * decoded)
}

func (q *question) done() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.taken.Give()
}

// transport has what a fleet answers counted.
type transport struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	count := upTo(maxDiscovery)
	if q, counted := r.Context().Value(questionKey{}).(*question); counted {
		count = q.grow
	}
	response.Body = &counted{ReadCloser: response.Body, count: count}
	return response, nil
}

// upTo lets so many bytes be read.
func upTo(left int) func(int) error {
	return func(bytes int) error {
		if left -= bytes; left < 0 {
			return errDiscovery
		}
		return nil
	}
}

// counted is a body of an answer.
type counted struct {
	io.ReadCloser
	count func(bytes int) error
}

// Read implements io.Reader.
func (c *counted) Read(into []byte) (int, error) {
	n, err := c.ReadCloser.Read(into)
	if n > 0 {
		if err := c.count(n); err != nil {
			return 0, err
		}
	}
	return n, err
}
