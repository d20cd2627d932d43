package capacity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// api serves nodes and pods in pages, and watches of them.
type api struct {
	mu      sync.Mutex
	nodes   []corev1.Node
	pods    []corev1.Pod
	refuse  bool
	pages   int
	watches []chan metav1.WatchEvent
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "true" {
		a.watch(w, r)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refuse {
		w.WriteHeader(http.StatusForbidden)
		_, _ =
			w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"not for you","code":403}`))
		return
	}
	a.pages++
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	meta := metav1.ListMeta{ResourceVersion: "1"}
	to := func(n int) int {
		if from+limit < n {
			meta.Continue = strconv.Itoa(from + limit)
			return from + limit
		}
		return n
	}
	if strings.HasSuffix(r.URL.Path, "/nodes") {
		items := a.nodes[from:to(len(a.nodes))]
		_ = json.NewEncoder(w).Encode(corev1.NodeList{ListMeta: meta, Items: items})
		return
	}
	items := a.pods[from:to(len(a.pods))]
	_ = json.NewEncoder(w).Encode(corev1.PodList{ListMeta: meta, Items: items})
}

func (a *api) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan metav1.WatchEvent, 10)
	if strings.HasSuffix(r.URL.Path, "/pods") {
		a.mu.Lock()
		a.watches = append(a.watches, events)
		a.mu.Unlock()
	}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-events:
			_ = json.NewEncoder(w).Encode(event)
			w.(http.Flusher).Flush()
		}
	}
}

func (a *api) send(kind string, pod *corev1.Pod) bool {
	pod.APIVersion, pod.Kind = "v1", "Pod"
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.watches {
		w <- metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Object: pod}}
	}
	return len(a.watches) > 0
}

func following(t *testing.T, a *api, limits Limits) *Follower {
	t.Helper()
	server := httptest.NewServer(a)
	core, err := typedcorev1.NewForConfig(&rest.Config{Host: server.URL, QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	f := NewFollower(core, limits)
	f.SumInterval, f.MaxDelay = 20*time.Millisecond, 20*time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done; server.CloseClientConnections(); server.Close() })
	return f
}

// becomes waits for a report that a check is satisfied with.
func becomes(t *testing.T, f *Follower, check func(*Report, error) error) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := check(f.Report())
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func available(want string) func(*Report, error) error {
	return func(r *Report, err error) error {
		if err != nil {
			return err
		}
		if got := amountsOf(r.Resources.Available); got != want {
			return fmt.Errorf("available %s, want %s", got, want)
		}
		return nil
	}
}

func TestFollow(t *testing.T) {
	a := &api{}
	for i := range 3 * pageSize {
		a.nodes = append(a.nodes, *nodeWith(fmt.Sprint("n", i), resources("cpu", "4", "pods", "10")))
		a.pods = append(a.pods, *podOn(fmt.Sprint("n", i), fmt.Sprint("p", i), resources("cpu", "1")))
	}
	f := following(t, a, DefaultLimits())
	becomes(t, f, available(fmt.Sprintf("cpu=%d;pods=%d;", 3*pageSize*3000, 3*pageSize*9)))
	becomes(t, f, func(*Report, error) error {
		if !a.send("ADDED", podOn("", "waits", resources("cpu", "500m"))) {
			return errors.New("no watch yet")
		}
		return nil
	})
	becomes(t, f, available(fmt.Sprintf("cpu=%d;pods=%d;", 3*pageSize*3000-500, 3*pageSize*9-1)))
	a.send("DELETED", podOn("n0", "p0", nil))
	becomes(t, f, available(fmt.Sprintf("cpu=%d;pods=%d;", 3*pageSize*3000+500, 3*pageSize*9)))
}

func TestTooLargeClustersAreSummed(t *testing.T) {
	a := &api{}
	for i := range 20 {
		a.nodes = append(a.nodes, *nodeWith(fmt.Sprint("n", i), resources("cpu", "4", "pods", "10")))
		a.pods = append(a.pods, *podOn(fmt.Sprint("n", i), fmt.Sprint("p", i), resources("cpu", "1")))
	}
	f := following(t, a, Limits{Nodes: 100, Pods: 10})
	becomes(t, f, func(r *Report, err error) error {
		if err != nil || !r.Summed || len(r.Resources.NodeClasses) > 0 {
			return fmt.Errorf("got %+v, %w", r, err)
		}
		return nil
	})
	becomes(t, f, available("cpu=60000;pods=180;"))
	a.mu.Lock()
	a.pods = a.pods[:5]
	a.mu.Unlock()
	becomes(t, f, func(r *Report, err error) error {
		if err != nil || r.Summed || len(r.Resources.NodeClasses) != 2 {
			return fmt.Errorf("got %+v, %w; one that has shrunk is known node by node", r, err)
		}
		return nil
	})
}

func TestWhatCannotBeReadIsTold(t *testing.T) {
	a := &api{refuse: true}
	f := following(t, a, DefaultLimits())
	becomes(t, f, func(_ *Report, err error) error {
		if err == nil || !strings.Contains(err.Error(), "reading pods: not for you") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	a.mu.Lock()
	a.refuse, a.nodes = false, []corev1.Node{*nodeWith("n", resources("cpu", "4"))}
	a.mu.Unlock()
	becomes(t, f, available("cpu=4000;"))
}
