package helm

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/trellis-garden/trellis/pkg/egress"
)

// A registry that was taken over gives other bytes than those that a chart's digest stands for: as the manifest, or as
// the layer.
func TestAttackRegistryGivesAnotherChart(t *testing.T) {
	honest := newChartRegistry(t)
	digest := honest.push(t, "charts/one:v1", "genuine", chartLayer)
	for _, swapped := range []string{"/manifests/", "/blobs/"} {
		hostile := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			recorder := httptest.NewRecorder()
			honest.Config.Handler.ServeHTTP(recorder, req)
			maps.Copy(w.Header(), recorder.Header())
			w.WriteHeader(recorder.Code)
			body := recorder.Body.String()
			if strings.Contains(req.URL.Path, swapped) {
				body = strings.NewReplacer("genuine", "hostile", `"schemaVersion":2`, `"schemaVersion":3`).Replace(body)
			}
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(hostile.Close)
		artifact := (&chartRegistry{Server: hostile}).artifact("charts/one@" + digest)
		if archive, err := (&Puller{}).Pull(t.Context(), artifact); err == nil {
			t.Errorf("with other %s, %q was taken for %s", swapped, archive, digest)
		}
	}
}

// A registry that was taken over sends who pulls a chart to an address that only the seed reaches: for a layer, or for
// a token.
func TestAttackRegistrySendsIntoTheSeed(t *testing.T) {
	honest := newChartRegistry(t)
	digest := honest.push(t, "charts/one:v1", "genuine", chartLayer)
	var asked atomic.Int32
	inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(inside.Close)
	for name, answer := range map[string]func(w http.ResponseWriter, req *http.Request) bool{
		"layer": func(w http.ResponseWriter, req *http.Request) bool {
			if strings.Contains(req.URL.Path, "/blobs/") {
				http.Redirect(w, req, inside.URL+"/layer", http.StatusTemporaryRedirect)
				return true
			}
			return false
		},
		"token": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+inside.URL+`/token",service="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		},
		"token by name": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("WWW-Authenticate",
				`Bearer realm="`+strings.Replace(inside.URL, "127.0.0.1", "localhost", 1)+`/token",service="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		},
	} {
		hostile := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if !answer(w, req) {
				honest.Config.Handler.ServeHTTP(w, req)
			}
		}))
		t.Cleanup(hostile.Close)
		artifact := (&chartRegistry{Server: hostile}).artifact("charts/one@" + digest)
		// The library itself refuses tokens from private addresses, and not from names that lead there.
		want := map[string]string{
			"layer": "127.0.0.1 is in 127.0.0.0/8", "token": "private or link-local",
			"token by name": "an operator of the seed can allow it",
		}[name]
		if archive, err := (&Puller{}).Pull(t.Context(), artifact); err == nil ||
			!strings.Contains(err.Error(), want) || asked.Load() > 0 {
			t.Errorf("%s: got %q, %v, asked %d times", name, archive, err, asked.Load())
		}
		allowing := &Puller{
			Rules: egress.Rules{Allowed: []egress.Allowance{{Network: netip.MustParsePrefix("127.0.0.1/32")}}},
		}
		if _, err := allowing.Pull(t.Context(), artifact); name == "layer" && asked.Swap(0) == 0 {
			t.Errorf("%s: an operator's exception does not count: %v", name, err)
		}
	}
}
