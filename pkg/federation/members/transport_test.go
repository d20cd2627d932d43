package members

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/trellis-garden/trellis/pkg/answers"
	"github.com/trellis-garden/trellis/pkg/federation/outside"
)

func TestAnnouncedAnswersAreRefusedUnread(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1073741824")
		_, _ = w.Write([]byte("x"))
	}))
	defer server.Close()
	client, err := httpClient(&rest.Config{Host: server.URL}, nil, outside.Direct,
		answers.NewGuard("the member", limits))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(server.URL)
	if err == nil {
		_ = response.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "it is larger than 64 MiB") {
		t.Errorf("got %v", err)
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
	client, err := httpClient(config, ProxyHeader(cluster), outside.Direct, answers.NewGuard("the member", limits))
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
