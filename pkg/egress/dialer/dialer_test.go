package dialer_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/egress/dialer"
	"github.com/trellis-garden/trellis/test/seedegress"
)

const namespace = "shoot--demo--fleet"

// One connection through the proxy carries many requests, with HTTP/2.
func TestRequestsShareAConnection(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	proxy := seedegress.Start(t, egress.Rules{}, seedegress.World{
		Resolve: func(host string) []netip.Addr {
			if host != "example.com." {
				return nil
			}
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}
		},
		Servers: map[string]string{"93.184.216.34:443": server.Listener.Addr().String()},
	})
	trusted := server.Client().Transport.(*http.Transport).TLSClientConfig
	client := &http.Client{Transport: &http.Transport{
		DialContext: proxy.Dialer(t, namespace).DialContext, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: trusted.RootCAs, MinVersion: tls.VersionTLS12},
	}}
	t.Cleanup(client.CloseIdleConnections)
	for range 3 {
		response, err := client.Get("https://example.com/")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || string(body) != "HTTP/2.0" {
			t.Errorf("got %q, %v", body, err)
		}
	}
	if got := proxy.Dialled(); !slices.Equal(got, []string{"93.184.216.34:443"}) {
		t.Errorf("dialled %v", got)
	}
}

func TestProxyThatIsAway(t *testing.T) {
	proxy := seedegress.Start(t, egress.Rules{}, seedegress.World{})
	d, err := dialer.New("localhost:1", proxy.Client(t, namespace), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.DialContext(t.Context(), "tcp", "127.0.0.1:443"); err == nil ||
		!strings.Contains(err.Error(), "the egress proxy of the seed cannot be reached") {
		t.Errorf("got %v", err)
	}
}
