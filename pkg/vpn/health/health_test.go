package health

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

func get(t *testing.T, s Server, path string) (int, string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	body, err := io.ReadAll(recorder.Body)
	if err != nil {
		t.Fatal(err)
	}
	return recorder.Code, string(body)
}

func TestEndpoints(t *testing.T) {
	notReady := Server{Ready: func() error { return errors.New("not yet") }}
	ready := Server{
		Ready: func() error { return nil },
		Metrics: []prometheus.Collector{
			Counter("b_total", "What is b.", func() int64 { return 2 }),
			Gauge("a", "What is a.", func() int { return 1 }),
		},
	}
	cases := []struct {
		server Server
		path   string
		status int
		body   string
	}{
		{notReady, "/healthz", 200, "ok\n"},
		{notReady, "/readyz", 503, "not yet\n"},
		{ready, "/readyz", 200, "ok\n"},
		{
			ready, "/metrics", 200, "# HELP a What is a.\n# TYPE a gauge\na 1\n# HELP b_total What is b.\n# TYPE " +
				"b_total counter\nb_total 2\n",
		},
		{ready, "/tunnel", 404, "404 page not found\n"},
	}
	for _, c := range cases {
		if status, body := get(t, c.server, c.path); status != c.status ||
			body != c.body && (c.path != "/metrics" || !strings.Contains(body, c.body)) {
			t.Errorf("%s: got %d %q, want %d %q", c.path, status, body, c.status, c.body)
		}
	}
}

func TestTunnelOf(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	if tunnel := TunnelOf(transport.Stats{}, now); tunnel.Up || tunnel.LastHandshake != nil ||
		tunnel.AgeSeconds != nil {
		t.Errorf("without a handshake: %+v", tunnel)
	}
	for age, up := range map[time.Duration]bool{time.Second: true, 179 * time.Second: true, 180 * time.Second: false} {
		tunnel := TunnelOf(transport.Stats{
			LastHandshake: now.Add(-age), HandshakeExpiry: 3 * time.Minute, SentBytes: 1, ReceivedBytes: 2,
		}, now)
		if tunnel.Up != up || *tunnel.AgeSeconds != age.Seconds() || tunnel.SentBytes != 1 ||
			tunnel.ReceivedBytes != 2 {
			t.Errorf("after %s: %+v", age, tunnel)
		}
	}
}

func TestTunnelStatus(t *testing.T) {
	stats := transport.Stats{HandshakeExpiry: 3 * time.Minute}
	s := Server{Tunnel: func() (transport.Stats, error) { return stats, nil }}
	if status, body := get(t, s, "/tunnel"); status != 503 ||
		body != `{"up":false,"receivedBytes":0,"sentBytes":0}`+"\n" {
		t.Errorf("without a handshake: got %d %q", status, body)
	}
	stats.LastHandshake = time.Now()
	if status, _ := get(t, s, "/tunnel"); status != 200 {
		t.Errorf("with a handshake: got %d", status)
	}
}
