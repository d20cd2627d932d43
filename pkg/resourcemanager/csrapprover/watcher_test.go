package csrapprover

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/resourcemanager/target"
)

// When the handlers of several controllers tell of a Secret's versions at different paces, one that is late has the target
// forgotten that was made of a newer version. The requests of that shoot's kubelets are watched on nevertheless.
func TestAWatchThatEndsWithItsTargetIsFollowedByAnother(t *testing.T) {
	watches, again := make(chan struct{}), make(chan string)
	apiServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		watches <- struct{}{}
		<-r.Context().Done()
	}))
	defer apiServer.Close()
	const kubeconfig = `{"current-context": "c", "clusters": [{"name": "c", "cluster": {"server": %q}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}]}`
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: target.SecretName},
		Data:       map[string][]byte{target.SecretKey: fmt.Appendf(nil, kubeconfig, apiServer.URL)},
	}
	seed := fake.NewClientBuilder().WithObjects(secret).Build()
	targets := target.NewStaticRegistry(seed)
	reconciler := &Reconciler{Seed: seed, Targets: targets, Context: t.Context(), Again: func(namespace string) { again <- namespace }}
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shoot", Name: target.SecretName}}

	for range 2 {
		if _, err := reconciler.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		<-watches
		targets.Refresh("shoot", "of an older event")
		if got := <-again; got != "shoot" {
			t.Fatalf("asked for %q", got)
		}
	}
}
