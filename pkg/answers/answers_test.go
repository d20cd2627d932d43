package answers

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

const mebi = 1 << 20

// flood answers with as much as is asked for.
func flood(t *testing.T, status int, contentType, chunk string, times int) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		for range times {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestAnswersAreLimited(t *testing.T) {
	const protobuf = "application/vnd.kubernetes.protobuf;stream=watch"
	chunk := strings.Repeat("x", mebi)
	tests := map[string]struct {
		status            int
		path, kind, chunk string
		times             int
		want              string
	}{
		"an answer":            {200, "/api", "application/json", chunk, 4, ""},
		"one that is too long": {200, "/api", "application/json", chunk, 5, "it is larger than 4 MiB"},
		"a watch": {
			200, "/api?watch=true", "application/json", `{"a":"}` + chunk + `"}` + "\n", 7, "",
		},
		"a watch with a large event": {
			200, "/api?watch=true", "application/json", `"` + chunk, 7, "an event is larger than 2 MiB",
		},
		"with lines in the event": {
			200, "/api?watch=true", "application/json", "[\n" + chunk + "\n", 7, "an event is larger than 2 MiB",
		},
		"a watch that floods": {
			200, "/api?watch=1", "application/json", `{"a":"` + chunk + `"}`, 8, "the watch is larger than 8 MiB",
		},
		"a watch of no format":         {200, "/api?watch=1", "", chunk, 8, "an event is larger than 2 MiB"},
		"protobuf bounds its events":   {200, "/api?watch=1", protobuf, chunk, 8, ""},
		"but not the watch as a whole": {200, "/api?watch=1", protobuf, chunk, 9, "the watch is larger than 8 MiB"},
		"an error instead of a watch": {
			500, "/api?watch=1", "application/json", "{}" + strings.Repeat(" ", mebi), 8, "it is larger than 4 MiB",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1_000_000, 0)
			g := NewGuard("the member", Limits{Answer: 4 * mebi, Event: 2 * mebi, Watch: 8 * mebi})
			g.now = func() time.Time { return now }
			server := flood(t, tc.status, tc.kind, tc.chunk, tc.times)
			response, err := (&http.Client{Transport: g.Wrap(server.Client().Transport)}).Get(server.URL + tc.path)
			if err == nil {
				_, err = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
			if got := fmt.Sprint(err); tc.want == "" && err != nil || tc.want != "" && !strings.Contains(got, tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if !strings.Contains(g.Violation(), tc.want) || (g.Violation() == "") != (tc.want == "") {
				t.Errorf("remembered: %q", g.Violation())
			}
			if now = now.Add(time.Hour); g.Violation() != "" {
				t.Error("it is not held against the server forever")
			}
		})
	}
}

func TestWatchesOfShootsEndWhenTheyLike(t *testing.T) {
	g := NewGuard("the shoot", Limits{Answer: 1, Event: 2 * mebi})
	server := flood(t, http.StatusOK, "application/json", `{"a":"`+strings.Repeat("x", mebi)+`"}`, 10)
	response, err := (&http.Client{Transport: g.Wrap(server.Client().Transport)}).Get(server.URL + "?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Error(err)
	}
}

type closes struct{ closed bool }

func (*closes) RoundTrip(*http.Request) (*http.Response, error) { return nil, io.EOF }
func (c *closes) CloseIdleConnections()                         { c.closed = true }

func TestIdleConnectionsAreClosedThroughTheGuard(t *testing.T) {
	inner := &closes{}
	wrapped, err := rest.HTTPWrappersForConfig(FromShoot(&rest.Config{BearerToken: "t"}), inner)
	if err != nil {
		t.Fatal(err)
	}
	if utilnet.CloseIdleConnectionsFor(wrapped); !inner.closed {
		t.Error("they stay open")
	}
}

func FuzzLimitedStream(f *testing.F) {
	f.Add([]byte(`{"a":"}\""}[1]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s := &limitedStream{
			limitedBody: limitedBody{ReadCloser: io.NopCloser(bytes.NewReader(body)), left: math.MaxInt64},
			most:        math.MaxInt64,
		}
		read, err := io.ReadAll(s)
		if err != nil || !bytes.Equal(read, body) {
			t.Errorf("got %q, %v", read, err)
		}
		if s.value > int64(len(body)) || s.depth < 0 {
			t.Errorf("value %d, depth %d", s.value, s.depth)
		}
	})
}
