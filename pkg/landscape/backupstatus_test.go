package landscape

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// wellBackedUp is what an etcd tells whose changes are saved.
func wellBackedUp() *status.Status {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &status.Status{
		Time: now, Phase: status.Serving, PhaseSince: now.Add(-time.Hour),
		Store: &status.Store{Delta: status.Operation{Succeeded: now.Add(-time.Minute), Revision: 7}},
	}
}

func TestBackupsOfTheGardenAreToldOf(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*status.Status)
		want   string
	}{
		"all is well": {func(*status.Status) {}, ""},
		"without a bucket": {
			func(told *status.Status) { told.Store = nil }, "etcd-main has no bucket; `up` gives it one",
		},
		"waiting for the bucket": {
			func(told *status.Status) {
				told.Phase = status.Awaiting
				told.Store.Failures = []status.Failure{{Operation: status.Start, Message: "connection refused"}}
			},
			"waiting for the store of backups: start of backups fails since 0001-01-01T00:00:00Z: connection refused",
		},
		"restoring": {
			func(told *status.Status) { told.Phase = status.Restoring }, "etcd-main: restoring a backup",
		},
		"a bucket that refuses": {
			func(told *status.Status) {
				told.Store.Failures = []status.Failure{{Operation: status.Delta, Message: "AccessDenied"}}
			},
			"delta of backups fails since 0001-01-01T00:00:00Z: AccessDenied",
		},
		"backups that cannot be restored on trial": {
			func(told *status.Status) {
				told.Store.Failures = []status.Failure{{Operation: status.Verification, Message: "damaged"}}
			},
			"verification of backups fails",
		},
		"data that differs": {
			func(told *status.Status) {
				told.Differs = &status.Difference{From: status.BackupStore, Backup: "delta-7"}
			},
			"etcd-main serves data that differs from delta-7 of the store of backups",
		},
		"nothing saved for long": {
			func(told *status.Status) { told.Store.Delta.Succeeded = told.Time.Add(-time.Hour) },
			"has saved no changes for more than 10m0s",
		},
	} {
		told := wellBackedUp()
		test.change(told)
		got := backupProblem(told)
		if !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// landscapeWithAPI is a landscape whose runtime cluster's API server is the handler.
func landscapeWithAPI(t *testing.T, handler http.HandlerFunc) *Landscape {
	t.Helper()
	apiServer := httptest.NewServer(handler)
	t.Cleanup(apiServer.Close)
	l, err := New("other", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(l.StateDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: apiServer.URL}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*config, l.RuntimeKubeconfig()); err != nil {
		t.Fatal(err)
	}
	return l
}

// Of three members one leads and saves the changes, whichever it is and also while another one is lost. What one saved
// that has just ceased to lead counts.
func TestTheLeaderOfTheGardensEtcdIsAsked(t *testing.T) {
	leader, lost := "etcd-main-2", "etcd-main-0"
	var lead sync.Mutex
	l := landscapeWithAPI(t, func(w http.ResponseWriter, r *http.Request) {
		lead.Lock()
		defer lead.Unlock()
		if lost != "" && strings.Contains(r.URL.Path, lost) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		told := wellBackedUp()
		if told.Leads = strings.Contains(r.URL.Path, leader); told.Leads {
			told.Store.Delta = status.Operation{}
		}
		_ = json.NewEncoder(w).Encode(told)
	})
	if err := os.WriteFile(l.path("state.json"), []byte(`{"name":"other","nodes":3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := l.gardenBackups(t.Context()); !got.healthy {
		t.Errorf("with a leader: got %+v", got)
	}
	lead.Lock()
	leader = "nobody"
	lead.Unlock()
	if got := l.gardenBackups(t.Context()); got.healthy || !strings.Contains(got.detail, "says that it leads") ||
		!strings.Contains(got.detail, "asking etcd-main-0: it answers with 503") {
		t.Errorf("without one: got %+v", got)
	}
}

// The host asks through the API server of the runtime cluster. What was restored is told for as long as etcd knows it.
func TestTheGardensEtcdIsAsked(t *testing.T) {
	told := wellBackedUp()
	told.Recoveries = []status.Recovery{{
		Cause: status.DataLost, Found: told.Time.Add(-time.Minute), Finished: told.Time,
		Restored: &status.Restored{From: status.BackupStore, Backup: "delta-7", Revision: 7, Taken: told.Time},
	}}
	answer := func(w http.ResponseWriter) { _ = json.NewEncoder(w).Encode(told) }
	asked := ""
	l := landscapeWithAPI(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.Path
		answer(w)
	})
	got := l.gardenBackups(t.Context())
	if !got.healthy || !strings.Contains(got.detail, "all changes are saved; etcd-main found no data, although") {
		t.Errorf("got %+v", got)
	}
	if asked != "GET /api/v1/namespaces/garden/pods/http:etcd-main-0:8080/proxy/status" {
		t.Errorf("asked was %s", asked)
	}
	answer = func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }
	if got := l.gardenBackups(t.Context()); got.healthy || !strings.Contains(got.detail, "503") {
		t.Errorf("got %+v", got)
	}
}
