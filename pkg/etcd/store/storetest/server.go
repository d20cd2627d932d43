package storetest

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// Server is what the servers of object stores that speak HTTP have in common: they run in memory and over TLS, and a
// test can answer in their place.
type Server struct {
	// URL and CA of the server; Bucket is the one it has.
	URL    string
	CA     []byte
	Bucket string

	address   string
	mu        sync.Mutex
	intercept func(http.ResponseWriter, *http.Request) bool
	seen      []*http.Request
	objects   map[string]object
}

// object is one that a server keeps.
type object struct {
	content  []byte
	modified time.Time
	// checksum that the client told the server to keep.
	checksum []byte
}

// request is one whose body has been read.
type request struct {
	*http.Request
	body []byte
}

// start serves until the test ends. Only requests that no test intercepts reach answer, one at a time.
func (s *Server) start(t *testing.T, answer func(http.ResponseWriter, request)) {
	t.Helper()
	s.Bucket, s.objects = "backups", map[string]object{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.mu.Lock()
		intercept := s.intercept
		s.seen = append(s.seen, r)
		s.mu.Unlock()
		if intercept != nil && intercept(w, r) {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		answer(w, request{r, body})
	}))
	// Clients that do not trust it are told of by them.
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	s.URL, s.address = server.URL, server.Listener.Addr().String()
	s.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// Intercept has the function see requests first. It returns true if it has answered.
func (s *Server) Intercept(intercept func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = intercept
}

// Requests are those that came so far, without their bodies.
func (s *Server) Requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Stored are the names of all that the server keeps, whatever a store lists of it.
func (s *Server) Stored() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sorted("", "")
}

// connection is how a store connects: whatever host it names, it gets to the server.
func (s *Server) connection() store.Connection {
	return store.Connection{
		CA: s.CA, RetryDelay: time.Millisecond,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, s.address)
		},
	}
}

// sorted are the names that begin with prefix and come after another.
func (s *Server) sorted(prefix, after string) []string {
	var names []string
	for name := range s.objects {
		if strings.HasPrefix(name, prefix) && name > after {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
