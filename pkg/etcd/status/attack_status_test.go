package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestAttackStatusOfAnEtcd plays who has taken over the pod of an etcd, and answers gardenlet with what would fill its
// memory, hold it up, or send it elsewhere.
func TestAttackStatusOfAnEtcd(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("gardenlet was sent elsewhere")
	}))
	t.Cleanup(elsewhere.Close)
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := fmt.Fprint(w, strings.Repeat("[", 4096)); err != nil {
				return
			}
		}
	}
	slow := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = fmt.Fprint(w, " ")
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	answer := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, text) }
	}
	for _, test := range []struct {
		name    string
		answers http.HandlerFunc
		want    string
	}{
		{"without an end", endless, "longer than"},
		{"slowly, without an end", slow, "deadline exceeded"},
		{"never", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline exceeded"},
		{"elsewhere", http.RedirectHandler(elsewhere.URL, http.StatusFound).ServeHTTP, "status 302"},
		{"a long head", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 2*mostHeader))
		}, "header"},
		{"no JSON", answer("\x1b[2J<html>"), "is none"},
		{"another JSON", answer(`["status"]`), "is none"},
		{"deep JSON", answer(strings.Repeat(`{"recovering":`, 4000)), "is none"},
		{"a time that is none", answer(`{"time":"99999-01-01T00:00:00Z"}`), "is none"},
		{"an error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "status 500"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(test.answers)
			t.Cleanup(server.Close)
			told, err := Ask(t.Context(), server.Listener.Addr().String())
			if err == nil || !strings.Contains(strings.ToLower(err.Error()), test.want) {
				t.Errorf("got %+v, %v, want %q", told, err, test.want)
			}
		})
	}
}

// TestAttackTextsOfAnEtcd plays the same, who writes to the terminals of who reads conditions, or fills objects of the
// garden.
func TestAttackTextsOfAnEtcd(t *testing.T) {
	evil := "\x1b]0;title\x07\u202e\r\n" + strings.Repeat("\x00", 300)
	failure := Failure{Operation: evil, Reason: evil, Message: evil}
	recovery := Recovery{
		Cause: Cause(evil), Reason: evil, Aside: evil, Missing: evil,
		Restored: &Restored{From: Source(evil), Backup: evil},
	}
	sent := Status{
		Phase: Phase(evil), ReadOnly: evil, Recovering: &recovery, Recoveries: []Recovery{recovery},
		Store: &Store{Failures: []Failure{failure}}, Space: []Space{{Of: evil}},
		Skipped: []Skip{{What: evil, Message: evil}},
		Differs: &Difference{From: Source(evil), Message: evil, Backup: evil, Changed: []Changed{{Key: evil}}},
	}
	content, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	told, err := Read(strings.NewReader(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	content, err = json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	if len(content) > 16*mostText || strings.Contains(string(content), `\u00`) ||
		strings.Contains(string(content), "\u202e") {
		t.Errorf("got %d bytes: %q", len(content), content)
	}
}

func TestListsAreBounded(t *testing.T) {
	item := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("{},", n), ",") + "]" }
	told, err := Read(strings.NewReader(`{"recoveries":` + item(1000) + `,"space":` + item(1000) + `,"skipped":` +
		item(1000) + `,"store":{"failures":` + item(1000) + `},"differs":{"changed":` + item(1000) + "}}"))
	if err != nil {
		t.Fatal(err)
	}
	if len(told.Recoveries) != MostRecoveries || len(told.Space) != most || len(told.Skipped) != most ||
		len(told.Store.Failures) != most || len(told.Differs.Changed) != MostChanged {
		t.Errorf("there are %d, %d, %d, %d and %d items", len(told.Recoveries), len(told.Space), len(told.Skipped),
			len(told.Store.Failures), len(told.Differs.Changed))
	}
}

func TestWhatIsToldIsRead(t *testing.T) {
	sent := Status{
		Time: noon, Phase: Serving, PhaseSince: noon, Recoveries: []Recovery{
			{
				Cause: DataDamaged, Found: noon, Finished: noon.Add(time.Minute),
				Restored: &Restored{BackupStore, "delta-1", 7, noon},
			},
		},
		Store: &Store{Delta: Operation{Succeeded: noon, Revision: 7}, Failures: []Failure{{Operation: Full}}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != Path || json.NewEncoder(w).Encode(sent) != nil {
			t.Errorf("asked for %s", r.URL)
		}
	}))
	t.Cleanup(server.Close)
	got, err := Ask(t.Context(), server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if got.Phase != Serving || got.Recoveries[0].Took() != time.Minute || got.Store.Delta.Revision != 7 ||
		got.Store.Failure(Full) == nil || got.Store.Failure(Delta) != nil {
		t.Errorf("got %+v", got)
	}
}

func TestOlderStewardsServeNoStatus(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	if _, err := Ask(t.Context(), server.Listener.Addr().String()); !errors.Is(err, ErrNotServed) {
		t.Errorf("got %v", err)
	}
	if _, err := Ask(t.Context(), "no address"); err == nil {
		t.Error("what is no address was asked")
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	if _, err := Ask(t.Context(), closed.Addr().String()); err == nil || errors.Is(err, ErrNotServed) {
		t.Errorf("got %v of one that is not there", err)
	}
}
