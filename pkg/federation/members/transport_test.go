package members

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// flood answers with as much as is asked for by the query.
func flood(t *testing.T, contentType, chunk string, times int) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
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
	mebi := strings.Repeat("x", 1<<20)
	tests := map[string]struct {
		path, kind, chunk string
		times             int
		want              string
	}{
		"an answer":                    {"/api", "application/json", mebi, 60, ""},
		"one that never ends":          {"/api", "application/json", mebi, 300, "it is larger than 64 MiB"},
		"a watch":                      {"/api?watch=true", "application/json", `{"a":"}` + mebi + `"}` + "\n", 100, ""},
		"a watch with a large event":   {"/api?watch=true", "application/json", `"` + mebi + `"`, 100, "an event is larger than 16 MiB"},
		"with lines in the event":      {"/api?watch=true", "application/json", "[\n" + mebi + "\n", 100, "an event is larger than 16 MiB"},
		"a watch that floods":          {"/api?watch=1", "application/json", `{"a":"` + mebi + `"}`, 300, "the watch is larger than 256 MiB"},
		"protobuf bounds its events":   {"/api?watch=1", "application/vnd.kubernetes.protobuf;stream=watch", mebi, 100, ""},
		"but not the watch as a whole": {"/api?watch=1", "application/vnd.kubernetes.protobuf;stream=watch", mebi, 300, "the watch is larger than 256 MiB"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1_000_000, 0)
			g := &guard{now: func() time.Time { return now }}
			server := flood(t, tc.kind, tc.chunk, tc.times)
			client, err := httpClient(&rest.Config{Host: server.URL}, nil, g)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Get(server.URL + tc.path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			_, err = io.Copy(io.Discard, response.Body)
			if got := fmt.Sprint(err); tc.want == "" && err != nil || !strings.Contains(got, tc.want) && tc.want != "" {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if !strings.Contains(g.violation(), tc.want) || (g.violation() == "") != (tc.want == "") {
				t.Errorf("remembered: %q", g.violation())
			}
			if now = now.Add(time.Hour); g.violation() != "" {
				t.Error("it is not held against the member forever")
			}
		})
	}
}

func TestAnnouncedAnswersAreRefusedUnread(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1073741824")
		_, _ = w.Write([]byte("x"))
	}))
	defer server.Close()
	client, err := httpClient(&rest.Config{Host: server.URL}, nil, &guard{now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if response, err := client.Get(server.URL); err == nil {
		_ = response.Body.Close()
		t.Error("read")
	}
}

// The proxy sees the headers that the Cluster names.
func TestProxyHeader(t *testing.T) {
	seen := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Method + " " + r.Host + " " + strings.Join(r.Header.Values("X-Key"), "|")
		w.WriteHeader(http.StatusForbidden)
	}))
	defer proxy.Close()
	cluster := clusterWith(proxy.URL, map[string]string{"X-Key": "a, b"})
	config, err := RESTConfig(cluster, secretWithToken())
	if err != nil {
		t.Fatal(err)
	}
	client, err := httpClient(config, ProxyHeader(cluster), &guard{now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if response, err := client.Get("https://member.example:443/"); err == nil {
		_ = response.Body.Close()
	}
	if got := <-seen; got != "CONNECT member.example:443 a|b" {
		t.Errorf("the proxy saw %s", got)
	}
}

func FuzzLimitedStream(f *testing.F) {
	f.Add([]byte(`{"a":"}\""}[1]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s := &limitedStream{limitedBody: limitedBody{ReadCloser: io.NopCloser(bytes.NewReader(body)), left: maxWatch}, json: true}
		read, err := io.ReadAll(s)
		if err != nil || !bytes.Equal(read, body) {
			t.Errorf("got %q, %v", read, err)
		}
		if s.value > int64(len(body)) || s.depth < 0 {
			t.Errorf("value %d, depth %d", s.value, s.depth)
		}
	})
}
