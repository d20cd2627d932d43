package dashboard

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gorilla/websocket"
)

// A shutdown closes sockets, with the code by which pages go elsewhere, and ends what they watched.
func TestShutdownWithSockets(t *testing.T) {
	l := newLandscape(t)
	b := l.as("alice-token")
	l.dashboard.settle = 0
	server, err := Options{}.server(l.dashboard)
	if err != nil {
		t.Fatal(err)
	}
	server.TLSConfig = l.web.TLS.Clone()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- l.dashboard.serve(ctx, server, listener) }()

	var pages []*page
	for n := range 5 {
		connection, _, err := dialAt(b, "wss://"+listener.Addr().String(), l.url, "/api/live", "trellis.live.v1")
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		p := &page{t, connection}
		p.subscribe("s", "filter", fmt.Sprint(n))
		p.subscribe("t", "namespace", "garden-a")
		pages = append(pages, p)
	}
	await(t, "watches are open", func() bool { return l.dashboard.live.Watches() == 2 })
	lists, letGo := l.blocked() // One is reading a list.
	defer letGo()
	pages[0].subscribe("u", "namespace", "garden-a", "labelSelector", "a")
	await(t, "a list is under way", func() bool { return lists() > 0 })
	cancel()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(shutdown):
		t.Fatal("it has not ended within its grace period")
	}
	if watches, sockets := l.dashboard.live.Watches(), l.dashboard.live.Sockets(); watches+sockets != 0 {
		t.Errorf("%d watches and %d sockets are left", watches, sockets)
	}
	for _, p := range pages {
		closed(t, p, websocket.CloseGoingAway)
	}
	await(t, "the garden is not watched any more", func() bool { return l.garden.Watching() == 0 })
}

func TestReadiness(t *testing.T) {
	l := newLandscape(t)
	ask := func(ctx context.Context) int {
		w := httptest.NewRecorder()
		l.dashboard.health(ctx).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return w.Code
	}
	if code := ask(t.Context()); code != http.StatusOK {
		t.Errorf("ready: %d", code)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if code := ask(ended); code != http.StatusServiceUnavailable {
		t.Errorf("while it ends: %d", code)
	}
	l.dashboard.pages.Files = fstest.MapFS{}
	if code := ask(t.Context()); code != http.StatusServiceUnavailable {
		t.Errorf("without pages: %d", code)
	}
}
