// Package answers bounds what API servers that others have in their hands may answer to a process of a seed: shoots,
// whose owners register APIs with them and whose workers are reached through them, and members of fleets. What is read
// has an end, and nobody is sent elsewhere.
package answers

import (
	"fmt"
	"math"
	"mime"
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// Limits are in bytes, after decompression.
type Limits struct {
	// Answer bounds the body of one answer that is not a watch.
	Answer int64
	// Event bounds one event of a watch.
	Event int64
	// Watch bounds what one watch may send before it has to be started anew; 0 is no bound.
	Watch int64
}

// ofShoots has room for lists of all objects of a kind in clusters with thousands of nodes. An event has room for the
// largest objects that etcd stores. Watches of large clusters may go on for as long as the shoot likes.
var ofShoots = Limits{Answer: 256 << 20, Event: 16 << 20}

// violationMemory is how long an answer that was too large is remembered.
const violationMemory = 10 * time.Minute

// Guard refuses answers that are too large, and remembers the last one.
type Guard struct {
	whose  string
	limits Limits
	now    func() time.Time

	mu   sync.Mutex
	last string
	at   time.Time
}

// NewGuard makes a guard. Whose answers they are is what errors say: "the member".
func NewGuard(whose string, limits Limits) *Guard {
	return &Guard{whose: whose, limits: limits, now: time.Now}
}

// FromShoot bounds what is read with a configuration of a shoot, and returns it.
func FromShoot(config *rest.Config) *rest.Config {
	config.Wrap(NewGuard("the shoot", ofShoots).Wrap)
	return config
}

// Violation tells about an answer that was too large a short while ago, or "".
func (g *Guard) Violation() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now().Sub(g.at) > violationMemory {
		return ""
	}
	return g.last
}

// Wrap guards what is read by a transport. What is upgraded to another protocol passes.
func (g *Guard) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{RoundTripper: next, guard: g}
}

func (g *Guard) refuse(request *http.Request, what string, limit int64) error {
	err := fmt.Errorf("the answer of %s at %s to %s %s was cut off: %s is larger than %d MiB",
		g.whose, request.URL.Host, request.Method, request.URL.Path, what, limit>>20)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last, g.at = err.Error(), g.now()
	return err
}

type transport struct {
	http.RoundTripper
	guard *Guard
}

// WrappedRoundTripper is how others find what idle connections to close.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

var _ utilnet.RoundTripperWrapper = &transport{}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err != nil || response.StatusCode == http.StatusSwitchingProtocols {
		return response, err
	}
	if err := t.guard.begin(request, response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

// begin refuses what the head of an answer shows to be wrong, and bounds its body.
func (g *Guard) begin(request *http.Request, response *http.Response) error {
	if err := g.staysHere(request, response); err != nil {
		return err
	}
	if !isWatch(request, response) {
		tooLarge := func() error { return g.refuse(request, "it", g.limits.Answer) }
		if response.ContentLength > g.limits.Answer {
			return tooLarge()
		}
		response.Body = &limitedBody{ReadCloser: response.Body, left: g.limits.Answer, fail: tooLarge}
		return nil
	}
	most := g.limits.Watch
	if most == 0 {
		most = math.MaxInt64
	}
	response.Body = &limitedStream{
		limitedBody: limitedBody{
			ReadCloser: response.Body, left: most, fail: func() error { return g.refuse(request, "the watch", most) },
		},
		framed: isFramed(response), most: g.limits.Event,
		tooLarge: func() error { return g.refuse(request, "an event", g.limits.Event) },
	}
	return nil
}

// staysHere keeps a server from having who reads from it ask somebody else, with all the networks that one reaches. API
// servers redirect reads within themselves.
func (g *Guard) staysHere(request *http.Request, response *http.Response) error {
	switch response.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
	default:
		return nil
	}
	location, err := request.URL.Parse(response.Header.Get("Location"))
	if err != nil {
		return fmt.Errorf("the answer of %s at %s to %s %s names no valid Location: %w", g.whose, request.URL.Host,
			request.Method, request.URL.Path, err)
	}
	reads := request.Method == http.MethodGet || request.Method == http.MethodHead
	if reads && location.Scheme == request.URL.Scheme && location.Host == request.URL.Host {
		return nil
	}
	return fmt.Errorf("%s at %s sends who asks %s %s elsewhere, to host %q, which it may not", g.whose,
		request.URL.Host, request.Method, request.URL.Path, location.Host)
}

// isWatch is false for what only was asked for as a watch: errors are read to their end.
func isWatch(request *http.Request, response *http.Response) bool {
	watch := request.URL.Query().Get("watch")
	return (watch == "true" || watch == "1") && response.StatusCode == http.StatusOK
}

// isFramed tells whether events are preceded by their lengths, which clients bound themselves. Whatever else, or
// nothing, is named, clients take for JSON.
func isFramed(response *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return kind == "application/vnd.kubernetes.protobuf"
}
