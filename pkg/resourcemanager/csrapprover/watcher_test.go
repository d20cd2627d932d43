package csrapprover

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/resourcemanager/target"
)

// seedOf is a seed with the control plane of a shoot, whose API server tells of each watch that is opened until it is
// closed.
func seedOf(t *testing.T) (seed client.Client, watches <-chan *http.Request) {
	t.Helper()
	opened := make(chan *http.Request)
	apiServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		opened <- r
		<-r.Context().Done()
	}))
	t.Cleanup(apiServer.Close)
	const kubeconfig = `{"current-context": "c", "clusters": [{"name": "c", "cluster": {"server": %q}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}]}`
	return fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: target.SecretName},
		Data:       map[string][]byte{target.SecretKey: fmt.Appendf(nil, kubeconfig, apiServer.URL)},
	}).Build(), opened
}

var ofShoot = ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shoot", Name: target.SecretName}}

// When the handlers of several controllers tell of a Secret's versions at different paces, one that is late has the
// target forgotten that was made of a newer version. The requests of that shoot's kubelets are watched on nevertheless.
func TestAWatchThatEndsWithItsTargetIsFollowedByAnother(t *testing.T) {
	seed, watches := seedOf(t)
	again := make(chan string)
	targets := target.NewStaticRegistry(seed)
	reconciler := &Reconciler{
		Seed: seed, Targets: targets, Context: t.Context(), Again: func(namespace string) { again <- namespace },
	}
	for range 2 {
		if _, err := reconciler.Reconcile(t.Context(), ofShoot); err != nil {
			t.Fatal(err)
		}
		<-watches
		targets.Refresh("shoot", "of an older event")
		if got := <-again; got != "shoot" {
			t.Fatalf("asked for %q", got)
		}
	}
}

// Requests for certificates of clients are nobody's business where no federation process is.
func TestAgentsAreWatchedInFleetsOnly(t *testing.T) {
	seed, watches := seedOf(t)
	reconciler := &Reconciler{
		Seed: seed, Targets: target.NewStaticRegistry(seed), Context: t.Context(), Again: func(string) {},
	}
	reconcile := func() {
		t.Helper()
		if _, err := reconciler.Reconcile(t.Context(), ofShoot); err != nil {
			t.Fatal(err)
		}
	}
	access := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: fleetv1alpha1.AccessSecret}}
	opened := func(signer, label string) *http.Request {
		t.Helper()
		r := <-watches
		if query := r.URL.Query(); query.Get("fieldSelector") != "spec.signerName="+signer ||
			query.Get("labelSelector") != label {
			t.Fatalf("got %s", r.URL)
		}
		return r
	}

	reconcile()
	ofKubelets := opened(certificatesv1.KubeletServingSignerName, "")
	for range 2 {
		if err := seed.Create(t.Context(), access.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		reconcile()
		ofAgents := opened(certificatesv1.KubeAPIServerClientSignerName, clusterv1alpha1.MemberLabel)
		reconcile()
		if err := seed.Delete(t.Context(), access.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		reconcile()
		<-ofAgents.Context().Done()
	}
	select {
	case r := <-watches:
		t.Errorf("one more watch: %s", r.URL)
	case <-ofKubelets.Context().Done():
		t.Error("kubelets are not watched any more")
	default:
	}
}
