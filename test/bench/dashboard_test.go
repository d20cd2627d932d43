package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/client-go/rest"

	"github.com/trellis-garden/trellis/pkg/dashboard"
)

// What is loaded first is what the build of the pages adds up.
func TestFirstModulesAreThoseOfTheBuild(t *testing.T) {
	text, err := os.ReadFile("../../dashboard/scripts/sizes.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if want := "['" + strings.Join(firstModules, "', '") + "']"; !strings.Contains(string(text), want) {
		t.Errorf("dashboard/scripts/sizes.mjs has no %s", want)
	}
}

func TestFirstFiles(t *testing.T) {
	folder := t.TempDir()
	manifest := map[string]map[string]any{
		"index.html": {
			"file": "assets/index.js", "css": []string{"assets/a.css"}, "imports": []string{"shared"},
		},
		"shared": {"file": "assets/shared.js", "imports": []string{"index.html"}},
		"src/app/Shell.tsx": {
			"file": "assets/Shell.js", "css": []string{"assets/a.css"}, "imports": []string{"shared"},
		},
		"src/i18n/en.ts":                {"file": "assets/en.js"},
		"src/projects/ProjectsPage.tsx": {"file": "assets/Projects.js"},
		"src/operators/Later.tsx":       {"file": "assets/later.js"},
	}
	write := func(name string, content any) {
		t.Helper()
		text, err := json.Marshal(content)
		path := filepath.Join(folder, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	write(".vite/manifest.json", manifest)
	for _, name := range []string{"worker-1a.js", "later.js", "worker-1a.js.br"} {
		write("assets/"+name, "")
	}
	got, err := firstFiles(folder)
	want := []string{
		"index.html", "assets/index.js", "assets/a.css", "assets/shared.js", "assets/Shell.js", "assets/en.js",
		"assets/Projects.js", "assets/worker-1a.js",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
	delete(manifest, "src/i18n/en.ts")
	write(".vite/manifest.json", manifest)
	if _, err := firstFiles(folder); err == nil || !strings.Contains(err.Error(), "src/i18n/en.ts") {
		t.Errorf("other pages: got %v", err)
	}
}

func TestSumOfWatches(t *testing.T) {
	const text = `# TYPE apiserver_longrunning_requests gauge
apiserver_longrunning_requests{resource="shoots",verb="WATCH"} 500
apiserver_longrunning_requests{resource="seeds",verb="WATCH"} 2
apiserver_longrunning_requests{resource="shoots",verb="CONNECT"} 7
`
	for _, test := range []struct {
		labels map[string]string
		want   float64
	}{
		{map[string]string{"verb": "WATCH"}, 502}, {nil, 509}, {map[string]string{"verb": "WATCH", "resource": "seeds"}, 2},
	} {
		if got, err := sumOf(text, "apiserver_longrunning_requests", test.labels); err != nil || got != test.want {
			t.Errorf("%v: got %v (%v), want %v", test.labels, got, err, test.want)
		}
	}
	if _, err := sumOf(text, "another", nil); err == nil {
		t.Error("a metric that is not there is 0")
	}
}

// A list counts when all of it has come, and not when it is short or refused.
func TestListReader(t *testing.T) {
	const part = `{"id":"s1","type":"snapshot","first":true,"items":[{"name":"a","uid":"1"},{"name":"b","uid":"2"}]}`
	sync := func(total int) string {
		return fmt.Sprintf(`{"id":"s1","type":"sync","resourceVersion":"5","total":%d}`, total)
	}
	for what, test := range map[string]struct {
		messages []string
		rows     int
		complete bool
		err      string
	}{
		"complete":  {[]string{part, part, sync(4)}, 4, true, ""},
		"under way": {[]string{part}, 2, false, ""},
		"short":     {[]string{part, sync(4)}, 2, true, "2 rows came of a list of 4"},
		"refused":   {[]string{`{"id":"s1","type":"error","error":{"message":"may not"}}`}, 0, false, "may not"},
		"no JSON":   {[]string{"x"}, 0, false, "invalid"},
	} {
		l := &listReader{}
		var err error
		for _, message := range test.messages {
			err = errors.Join(err, l.take([]byte(message)))
		}
		if l.rows != test.rows || l.complete != test.complete || (err == nil) != (test.err == "") ||
			err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %d rows, %t, %v", what, l.rows, l.complete, err)
		}
	}
}

// A change has come when the last browser has it; other messages do not count, and a browser that is lost ends it.
func TestWave(t *testing.T) {
	w := &wave{browsers: 2}
	done := w.begin("bench-1.")
	w.receive([]byte(`{"description":"bench-1."}`))
	w.receive([]byte(`{"description":"bench-10."}`))
	select {
	case <-done:
		t.Fatal("one browser has it, and that is taken for all")
	default:
	}
	w.receive([]byte(`{"description":"bench-1."}`))
	if err := w.await(t.Context(), done); err != nil {
		t.Error(err)
	}
	w.receive([]byte(`{"description":"bench-1."}`))
	done, lost := w.begin("bench-2."), errors.New("lost")
	w.end(t.Context(), lost)
	if err := w.await(t.Context(), done); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
	if err := w.await(t.Context(), w.begin("bench-3.")); !errors.Is(err, lost) {
		t.Errorf("after a loss: got %v", err)
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	w = &wave{browsers: 1}
	w.end(over, lost)
	if w.err != nil {
		t.Errorf("the end of the measurement is a loss: %v", w.err)
	}
}

// A browser logs in by its token, shows the cookie and its origin, and takes nobody else's connection.
func TestBrowser(t *testing.T) {
	user := "person-000"
	upgrader := websocket.Upgrader{Subprotocols: []string{"trellis.live.v1"}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/login/token", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Token string }
		if json.NewDecoder(r.Body).Decode(&body) != nil || body.Token != "token-of-person-000" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "sealed"})
	})
	mux.HandleFunc("GET /api/live", func(w http.ResponseWriter, r *http.Request) {
		if cookie, err := r.Cookie("session"); err != nil || cookie.Value != "sealed" {
			t.Errorf("no cookie: %v", r.Header)
		}
		connection, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer connection.Close()
		_ = connection.WriteJSON(map[string]string{"type": "hello", "user": user})
		var asked map[string]string
		if connection.ReadJSON(&asked) != nil {
			return
		}
		if asked["type"] != "subscribe" || asked["resource"] != "shoots" || asked["view"] != "row" {
			t.Errorf("got %v", asked)
		}
		_ = connection.WriteJSON(map[string]any{
			"id": "s1", "type": "snapshot", "items": []map[string]string{{"uid": "1"}, {"uid": "2"}},
		})
		_ = connection.WriteJSON(map[string]any{"id": "s1", "type": "sync", "total": 2})
	})
	web := httptest.NewTLSServer(mux)
	defer web.Close()
	server := &dashboardServer{
		url: web.URL, pages: web.Client(), tls: web.Client().Transport.(*http.Transport).TLSClientConfig,
	}
	people, _ := newPeople(2)
	b, err := server.enter(t.Context(), people[0])
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	took, err := b.list(t.Context(), 2)
	if err != nil || took.first <= 0 || took.all < took.first || took.all > time.Minute {
		t.Errorf("got %+v (%v)", took, err)
	}
	if _, err := b.list(t.Context(), 3); err == nil || !strings.Contains(err.Error(), "not of 3") {
		t.Errorf("a list that is short: got %v", err)
	}
	user = "person-001"
	if _, err := b.list(t.Context(), 2); err == nil || !strings.Contains(err.Error(), "the connection of") {
		t.Errorf("another's connection: got %v", err)
	}
	if _, err := server.enter(t.Context(), people[1]); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a wrong token: got %v", err)
	}
}

// The dashboard serves with what it is given, and no key of it is for others to read.
func TestDashboardConfiguration(t *testing.T) {
	s, folder := &dashboardServer{}, t.TempDir()
	arguments, err := s.configure(folder, &rest.Config{
		Host: "https://127.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{CertData: []byte("c"), KeyData: []byte("k")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, argument := range arguments {
		path, isFile := strings.CutPrefix(argument[strings.Index(argument, "=")+1:], folder)
		if !isFile {
			continue
		}
		if info, err := os.Stat(filepath.Join(folder, path)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", argument, err)
		}
	}
	config, err := dashboard.ReadConfig(filepath.Join(folder, "config.yaml"))
	if err != nil || config.PublicURL != s.url || config.Garden.Server != "https://127.0.0.1:6443" {
		t.Errorf("got %+v (%v)", config, err)
	}
}
