package managers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// An API server that is not there, then there but not able to answer, then well.
func TestBeginWaitsForAnAPIServer(t *testing.T) {
	asked := atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 {
			http.Error(w, "etcd does not answer", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api" {
			fmt.Fprint(w, `{"kind": "APIVersions", "versions": ["v1"]}`)
			return
		}
		fmt.Fprint(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`)
	}))
	defer server.Close()
	away := "http://" + freeAddress(t)
	tries := 0
	err := (&beginning{}).persist(t.Context(), time.Nanosecond, func(ctx context.Context) error {
		host := server.URL
		if tries++; tries == 1 {
			host = away
		}
		return Groups(&rest.Config{Host: host})(ctx)
	})
	if err != nil || tries < 3 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

// An API server without etcd answers, and is not healthy: that passes, while what is forbidden does not.
func TestHealthyAsksForEtcdToo(t *testing.T) {
	code := atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.WriteHeader(int(code.Load()))
	}))
	defer server.Close()
	for _, test := range []struct {
		code            int32
		healthy, passes bool
	}{
		{http.StatusInternalServerError, false, true}, {http.StatusForbidden, false, false},
		{http.StatusOK, true, false},
	} {
		code.Store(test.code)
		err := Healthy(&rest.Config{Host: server.URL})(t.Context())
		if (err == nil) != test.healthy || isUnanswered(err) != test.passes {
			t.Errorf("%d: %v", test.code, err)
		}
	}
}

func TestBeginEndsWithAnAnswer(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "seeds"}, "local", errors.New("no"))
	tries := 0
	err := Begin(t.Context(), "0", func(context.Context) error {
		tries++
		return fmt.Errorf("registering the seed: %w", forbidden)
	})
	if !apierrors.IsForbidden(err) || tries != 1 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

// A program that is told to end while it waits says what it waited for.
func TestBeginEndsWithItsProgram(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	unanswered := &url.Error{Op: "Get", URL: "https://garden", Err: errors.New("connection refused")}
	err := (&beginning{}).persist(ctx, time.Nanosecond, func(context.Context) error {
		cancel()
		return unanswered
	})
	if !errors.Is(err, unanswered) {
		t.Errorf("got %v", err)
	}
}

func TestBeginAnswersProbesMeanwhile(t *testing.T) {
	address := freeAddress(t)
	err := Begin(t.Context(), address, func(context.Context) error {
		if code, body := probe(t, "http://"+address+"/healthz"); code != http.StatusOK {
			t.Errorf("liveness: %d %s", code, body)
		}
		if code, body := probe(t, "http://"+address+"/readyz"); code != http.StatusServiceUnavailable {
			t.Errorf("readiness: %d %s", code, body)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("the manager does not get its address: %v", err)
	}
	defer listener.Close()
	if err := Begin(t.Context(), address, nil); err == nil || !strings.Contains(err.Error(), "health endpoint") {
		t.Errorf("an address that is taken: %v", err)
	}
}

func TestReadinessSaysWhatIsWaitedFor(t *testing.T) {
	waiting := &beginning{}
	waiting.reason.Store(new("garden: connection refused"))
	server := httptest.NewServer(waiting.handler())
	defer server.Close()
	if _, body := probe(t, server.URL+"/readyz"); !strings.Contains(body, "garden: connection refused") {
		t.Errorf("got %q", body)
	}
}

func probe(t *testing.T, address string) (int, string) {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestUnanswered(t *testing.T) {
	get := func(err error) error { return &url.Error{Op: "Get", URL: "https://garden", Err: err} }
	seeds := schema.GroupResource{Resource: "seeds"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":             {nil, false},
		"refused":             {get(&net.OpError{Op: "dial", Err: errors.New("connection refused")}), true},
		"no such host":        {get(&net.DNSError{Err: "no such host", Name: "garden", IsNotFound: true}), true},
		"another certificate": {get(&tls.CertificateVerificationError{Err: errors.New("unknown authority")}), false},
		"late":                {fmt.Errorf("definitions: %w", context.DeadlineExceeded), true},
		"busy":                {apierrors.NewTooManyRequests("later", 1), true},
		"internal error":      {apierrors.NewInternalError(errors.New("etcd")), true},
		"unavailable":         {fmt.Errorf("seed: %w", apierrors.NewServiceUnavailable("etcd")), true},
		"slow":                {apierrors.NewTimeoutError("etcd", 1), true},
		"unauthorized":        {apierrors.NewUnauthorized("expired"), false},
		"not found":           {apierrors.NewNotFound(seeds, "local"), false},
		"an error of our own": {errors.New("no image"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isUnanswered(test.err); got != test.want {
				t.Errorf("%v: %v", test.err, got)
			}
		})
	}
}
