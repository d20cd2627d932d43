package reservation

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// releaseTimeout bounds how long a request is held up at its end.
const releaseTimeout = 5 * time.Second

// request is a request to the server, with what it has claimed.
type request struct {
	id string

	mutex sync.Mutex
	keys  []string
}

func (r *request) claimed(key string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.keys = append(r.keys, key)
}

// take returns what was claimed, once.
func (r *request) take() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	keys := r.keys
	r.keys = nil
	return keys
}

type requestKey struct{}

func requestFrom(ctx context.Context) (*request, bool) {
	found, ok := ctx.Value(requestKey{}).(*request)
	return found, ok
}

// Begin returns the context of a request in which claims can be made, and what ends them.
func (r *Reservations) Begin(ctx context.Context) (context.Context, func()) {
	begun := &request{id: newID()}
	return context.WithValue(ctx, requestKey{}, begun), func() { r.end(ctx, begun) }
}

// end ends the claims of a request. One that was given up may still be written to etcd at this moment: its claims
// expire.
func (r *Reservations) end(ctx context.Context, ended *request) {
	keys := ended.take()
	if len(keys) == 0 || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := r.release(ctx, keys); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot end claims; they expire", "claims", keys, "after", lifetime)
	}
}

// WithReservations lets all requests that a handler serves make claims, which end when they are answered.
func (r *Reservations) WithReservations(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx, end := r.Begin(req.Context())
		defer end()
		handler.ServeHTTP(w, req.WithContext(ctx))
	})
}
