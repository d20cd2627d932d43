package answers

import (
	"compress/gzip"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// hostile serves what a shoot's owner likes, and gives a client of it whose answers may have 4 MiB.
func hostile(t *testing.T, handler http.HandlerFunc) kubernetes.Interface {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
	config.Wrap(NewGuard("the shoot", Limits{Answer: 4 * mebi, Event: mebi}).Wrap)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestAttackEndlessAnswers plays the owner of a shoot whose API server answers without an end, or with what takes much
// more room than it sends.
func TestAttackEndlessAnswers(t *testing.T) {
	chunk := []byte(strings.Repeat(" ", 1<<16))
	endless := func(w io.Writer, begin string) {
		_, err := io.WriteString(w, begin)
		for err == nil {
			_, err = w.Write(chunk)
		}
	}
	for name, handler := range map[string]http.HandlerFunc{
		"never ends": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			endless(w, `{"items":[`)
		},
		"compressed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			endless(gzip.NewWriter(w), `{"items":[`)
		},
		"an error that never ends": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			endless(w, `{"kind":"Status"`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := hostile(t, handler)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), "the answer of the shoot at 127.0.0.1:") ||
				!strings.Contains(err.Error(), "to GET /api/v1/pods was cut off: it is larger than 4 MiB") {
				t.Errorf("got %v", err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 100*mebi {
				t.Errorf("it took %d MiB to find out", took/mebi)
			}
		})
	}
}

// TestAttackEndlessEvent plays the owner of a shoot whose API server sends one event of a watch that never ends, in
// formats that clients take for JSON.
func TestAttackEndlessEvent(t *testing.T) {
	for _, kind := range []string{"application/json", "application/json;stream=watch", "", "nonsense/"} {
		client := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{kind}
			_, err := io.WriteString(w, `{"type":"ADDED","object":"`)
			for err == nil {
				_, err = io.WriteString(w, strings.Repeat("x", 1<<16))
			}
		})
		watch, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Errorf("%q: %v", kind, err)
			continue
		}
		for event := range watch.ResultChan() {
			if status, is := event.Object.(*metav1.Status); !is ||
				!strings.Contains(status.Message, "an event is larger than 1 MiB") {
				t.Errorf("%q: got %v", kind, event)
			}
		}
	}
}

// TestAttackRedirectsTheSeed plays the owner of a shoot who sends gardenlet to an address that only the seed reaches.
func TestAttackRedirectsTheSeed(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the address inside was asked")
	}))
	t.Cleanup(inside.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		client := hostile(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, inside.URL+"/latest", status)
		})
		if _, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err == nil ||
			!strings.Contains(err.Error(), "elsewhere, to host \"127.0.0.1:") {
			t.Errorf("%d: got %v", status, err)
		}
	}
}

// Within itself an API server redirects those who read, as it does for OpenAPI documents of another version.
func TestRedirectsWithinAServer(t *testing.T) {
	client := hostile(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/there" {
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","items":[{}]}`)
	})
	if pods, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil ||
		len(pods.Items) != 1 {
		t.Errorf("got %v, %v", pods, err)
	}
	if err := client.CoreV1().Pods("a").Delete(t.Context(), "b", metav1.DeleteOptions{}); err == nil ||
		!strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("what writes is sent on: %v", err)
	}
}
