package members

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

const (
	// maxAnswer bounds the body of one answer of a member that is not a watch.
	maxAnswer = 64 << 20
	// maxEvent bounds one event of a watch.
	maxEvent = 16 << 20
	// maxWatch bounds what one watch may send before it has to be started anew, which happens every few minutes anyway.
	maxWatch = 256 << 20
	// headerTimeout is how long a member may take to begin an answer.
	headerTimeout = 30 * time.Second
	// violationMemory is how long an answer that was too large is remembered.
	violationMemory = 10 * time.Minute
)

// guard refuses answers that are too large, and remembers the last one.
type guard struct {
	mu   sync.Mutex
	last string
	at   time.Time
	now  func() time.Time
}

// violation tells about an answer that was too large a short while ago, or "".
func (g *guard) violation() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now().Sub(g.at) > violationMemory {
		return ""
	}
	return g.last
}

func (g *guard) refuse(request *http.Request, what string, limit int64) error {
	err := fmt.Errorf("the member's answer to %s %s was cut off: %s is larger than %d MiB", request.Method, request.URL.Path, what, limit>>20)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last, g.at = err.Error(), g.now()
	return err
}

// wrap limits the bodies of answers. What is upgraded to another protocol passes.
func (g *guard) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil || response.StatusCode == http.StatusSwitchingProtocols {
			return response, err
		}
		if isWatch(request) {
			kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
			response.Body = &limitedStream{limitedBody: limitedBody{ReadCloser: response.Body, left: maxWatch, fail: func() error { return g.refuse(request, "the watch", maxWatch) }},
				json: kind == "application/json", tooLarge: func() error { return g.refuse(request, "an event", maxEvent) }}
			return response, nil
		}
		if response.ContentLength > maxAnswer {
			_ = response.Body.Close()
			return nil, g.refuse(request, "it", maxAnswer)
		}
		response.Body = &limitedBody{ReadCloser: response.Body, left: maxAnswer, fail: func() error { return g.refuse(request, "it", maxAnswer) }}
		return response, nil
	})
}

func isWatch(request *http.Request) bool {
	watch := request.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// limitedBody fails once more than left bytes were read.
type limitedBody struct {
	io.ReadCloser
	left int64
	fail func() error
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.fail()
	}
	return n, err
}

// limitedStream fails also when one JSON value is too large. Other formats bound their events themselves.
type limitedStream struct {
	limitedBody
	json     bool
	tooLarge func() error

	value           int64
	depth           int64
	inText, escaped bool
}

func (s *limitedStream) Read(p []byte) (int, error) {
	n, err := s.limitedBody.Read(p)
	if !s.json {
		return n, err
	}
	for _, c := range p[:n] {
		s.scan(c)
		if s.value > maxEvent {
			return 0, s.tooLarge()
		}
	}
	return n, err
}

// scan counts the bytes of the outermost value.
func (s *limitedStream) scan(c byte) {
	s.value++
	switch {
	case s.escaped:
		s.escaped = false
	case s.inText:
		s.escaped, s.inText = c == '\\', c != '"'
	case c == '"':
		s.inText = true
	case c == '{' || c == '[':
		s.depth++
	case c == '}' || c == ']':
		if s.depth--; s.depth <= 0 {
			s.value, s.depth = 0, 0
		}
	}
}

// httpClient makes connections of its own for a member, guarded against what it may answer.
func httpClient(config *rest.Config, proxyHeader http.Header, g *guard) (*http.Client, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	proxy := config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	base := utilnet.SetTransportDefaults(&http.Transport{
		DialContext: Dialer().DialContext,
		Proxy:       proxy, ProxyConnectHeader: proxyHeader, TLSClientConfig: tlsConfig,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: headerTimeout, MaxIdleConnsPerHost: 25, MaxResponseHeaderBytes: 1 << 20,
	})
	wrapped, err := rest.HTTPWrappersForConfig(config, base)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: g.wrap(wrapped), CheckRedirect: refuseRedirect}, nil
}

// refuseRedirect keeps a member from having the fleet ask whom it likes.
func refuseRedirect(request *http.Request, _ []*http.Request) error {
	return fmt.Errorf("the member sends who asks elsewhere, to host %q, which a member may not", request.URL.Host)
}
