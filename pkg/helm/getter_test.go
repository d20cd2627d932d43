package helm

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

// serveDiscovery is an API server that tells of ConfigMaps, and of Widgets once they are served.
func serveDiscovery(t *testing.T, widgets *atomic.Bool) *rest.Config {
	t.Helper()
	groups := func() metav1.APIGroupList {
		list := metav1.APIGroupList{Groups: []metav1.APIGroup{}}
		if widgets.Load() {
			v1 := metav1.GroupVersionForDiscovery{GroupVersion: "example.com/v1", Version: "v1"}
			list.Groups = append(list.Groups, metav1.APIGroup{
				Name: "example.com", Versions: []metav1.GroupVersionForDiscovery{v1}, PreferredVersion: v1,
			})
		}
		return list
	}
	resources := func(groupVersion, name, kind string) metav1.APIResourceList {
		resource := metav1.APIResource{Name: name, Kind: kind, Namespaced: true}
		return metav1.APIResourceList{GroupVersion: groupVersion, APIResources: []metav1.APIResource{resource}}
	}
	secrets := func() any {
		list := corev1.SecretList{}
		list.APIVersion, list.Kind = "v1", "SecretList"
		return list
	}
	answers := map[string]func() any{
		"/api/v1/namespaces/demo/secrets": secrets,
		"/version": func() any {
			return version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3"}
		},
		"/api":                 func() any { return metav1.APIVersions{Versions: []string{"v1"}} },
		"/apis":                func() any { return groups() },
		"/api/v1":              func() any { return resources("v1", "configmaps", "ConfigMap") },
		"/apis/example.com/v1": func() any { return resources("example.com/v1", "widgets", "Widget") },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer()); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// A kind that another chart brought is known to the next operation, without a new client.
func TestOperationsKnowKindsThatCameSince(t *testing.T) {
	var widgets atomic.Bool
	c, err := NewClient(serveDiscovery(t, &widgets))
	if err != nil {
		t.Fatal(err)
	}
	// What every operation of Helm begins with.
	begin := func() *action.Configuration {
		configuration, err := c.configuration("demo")
		if err != nil {
			t.Fatal(err)
		}
		discovery, err := configuration.RESTClientGetter.ToDiscoveryClient()
		if err != nil {
			t.Fatal(err)
		}
		discovery.Invalidate()
		if _, err := action.GetVersionSet(discovery); err != nil {
			t.Fatal(err)
		}
		return configuration
	}
	widget := func(configuration *action.Configuration) error {
		mapper, err := configuration.RESTClientGetter.ToRESTMapper()
		if err != nil {
			t.Fatal(err)
		}
		return findWidget(mapper)
	}

	if err := widget(begin()); !meta.IsNoMatchError(err) {
		t.Fatalf("before the kind is served: %v, want no match", err)
	}
	widgets.Store(true)
	if err := widget(begin()); err != nil {
		t.Errorf("once the kind is served: %v", err)
	}
}

// What was installed with a kind that this process has not seen yet is removed by it.
func TestUninstallKnowsKindsThatCameSince(t *testing.T) {
	var widgets atomic.Bool
	c, err := NewClient(serveDiscovery(t, &widgets))
	if err != nil {
		t.Fatal(err)
	}
	if err := findWidget(c.getter.mapper); !meta.IsNoMatchError(err) {
		t.Fatalf("before the kind is served: %v, want no match", err)
	}
	widgets.Store(true)
	if err := findWidget(c.getter.mapper); !meta.IsNoMatchError(err) {
		t.Fatalf("without an operation: %v, want no match", err)
	}
	if err := c.Uninstall(t.Context(), "demo", "gone"); err != nil {
		t.Fatal(err)
	}
	if err := findWidget(c.getter.mapper); err != nil {
		t.Errorf("after an operation: %v", err)
	}
}

func findWidget(mapper meta.RESTMapper) error {
	_, err := mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Widget"}, "v1")
	return err
}
