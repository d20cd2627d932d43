package members

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/federation/outside"
)

// A hostile member answers by sending the fleet to an address in the seed's network.
func TestAttackRedirectsTheFleet(t *testing.T) {
	asked := false
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked = true }))
	t.Cleanup(inside.Close)
	member := httptest.NewTLSServer(http.RedirectHandler(inside.URL, http.StatusFound))
	t.Cleanup(member.Close)
	cluster := clusterWith("", nil)
	cluster.Name, cluster.Spec.APIEndpoint = "m", member.URL
	m, err := NewPool(func(string, client.Object) {}, outside.Direct).Refresh(t.Context(), cluster, secretWithToken())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "elsewhere") || asked {
		t.Errorf("got %v, asked: %v", err, asked)
	}
}

// serving is a member with groups that have so many kinds each, named as it pleases.
func serving(t *testing.T, groups, kinds int, name string) *Member {
	t.Helper()
	answer := func(w http.ResponseWriter, object any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(object)
	}
	var list metav1.APIGroupList
	resources := metav1.APIResourceList{}
	for i := range groups {
		served := metav1.GroupVersionForDiscovery{GroupVersion: fmt.Sprintf("group-%d/v1", i), Version: "v1"}
		list.Groups = append(list.Groups,
			metav1.APIGroup{
				Name: fmt.Sprintf("group-%d", i), Versions: []metav1.GroupVersionForDiscovery{served},
				PreferredVersion: served,
			})
	}
	for i := range kinds {
		resources.APIResources = append(resources.APIResources,
			metav1.APIResource{Name: fmt.Sprint(name, i), Kind: name, Verbs: metav1.Verbs{"list"}})
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/version":
			answer(w, version.Info{GitVersion: "v1.36.0" + strings.Repeat(name, 10)})
		case "/api":
			answer(w, metav1.APIVersions{})
		case "/apis":
			answer(w, list)
		default:
			served := resources
			served.GroupVersion = strings.TrimPrefix(r.URL.Path, "/apis/")
			answer(w, served)
		}
	}))
	t.Cleanup(server.Close)
	cluster := clusterWith("", nil)
	cluster.Name, cluster.Spec.APIEndpoint = "m", server.URL
	m, err := NewPool(func(string, client.Object) {}, outside.Direct).Refresh(t.Context(), cluster, secretWithToken())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.close)
	return m
}

// A hostile member serves more kinds than a Cluster can hold, or gives them names that grow when they are stored.
func TestAttackManyAPIs(t *testing.T) {
	for what, name := range map[string]string{
		"long names": strings.Repeat("x", 60), "names that grow": strings.Repeat("<", 60),
	} {
		m := serving(t, 100, 100, name)
		kept, complete, err := m.APIs()
		if err != nil {
			t.Fatal(err)
		}
		if text, err := json.Marshal(kept); err != nil || len(text) > maxAPIs+4096 || len(kept) == 0 || complete {
			t.Errorf("%s: %d groups, %d bytes, complete: %v, %v", what, len(kept), len(text), complete, err)
		}
		if version, err := m.Version(); err == nil {
			t.Errorf("%s: the version has %d bytes", what, len(version))
		}
	}
	if kept, complete, err := serving(t, 5, 5, "x").APIs(); err != nil || len(kept) != 5 ||
		len(kept[4].Resources) != 5 || !complete {
		t.Errorf("what fits is cut to %d, complete: %v, %v", len(kept), complete, err)
	}
}
