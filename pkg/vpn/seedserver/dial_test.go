package seedserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

func TestExplain(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	cases := map[string]struct {
		err           error
		lastHandshake time.Time
		status        int
		text          string
	}{
		"never connected": {
			context.DeadlineExceeded, time.Time{}, http.StatusGatewayTimeout,
			"tunnel: connecting to x: the shoot never connected",
		},
		"gone": {
			errors.New("refused"), now.Add(-5 * time.Minute), http.StatusGatewayTimeout,
			"tunnel: connecting to x: the shoot last connected 5m0s ago",
		},
		"no answer": {
			context.DeadlineExceeded, now.Add(-time.Minute), http.StatusGatewayTimeout,
			"shoot: connecting to x: no answer (the tunnel's last handshake was 1m0s ago)",
		},
		"refused": {
			errors.New("connection was refused"), now.Add(-time.Minute), http.StatusBadGateway,
			"shoot: connecting to x: connection was refused",
		},
	}
	for name, c := range cases {
		got := explain(c.err, "connecting to x",
			transport.Stats{LastHandshake: c.lastHandshake, HandshakeExpiry: 3 * time.Minute}, now)
		if got.Status != c.status || !strings.HasPrefix(got.Message, c.text) {
			t.Errorf("%s: got %d %q, want %d %q", name, got.Status, got.Message, c.status, c.text)
		}
	}
}

func TestQualify(t *testing.T) {
	for name, want := range map[string]string{
		"webhook.demo.svc":               "webhook.demo.svc.cluster.local.",
		"webhook.demo.svc.":              "webhook.demo.svc.cluster.local.",
		"webhook.demo.svc.cluster.local": "webhook.demo.svc.cluster.local.",
		"example.org":                    "example.org.",
	} {
		if got := qualify(name, "cluster.local"); got != want {
			t.Errorf("qualify(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestSplitAddress(t *testing.T) {
	if host, port, err := splitAddress("[fd00::1]:10250"); host != "fd00::1" || port != 10250 || err != nil {
		t.Errorf("got %q, %d, %v", host, port, err)
	}
	for _, address := range []string{"", "10.3.0.1", "10.3.0.1:0", "10.3.0.1:65536", "10.3.0.1:https"} {
		if _, _, err := splitAddress(address); err == nil {
			t.Errorf("address %q was accepted", address)
		}
	}
}
