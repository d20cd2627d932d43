package workers

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// TestHibernationGoesOnWithoutFleets: a fleet that is never done holds up the sleep until two minutes have passed since
// the Shoot was changed. Then the task succeeds, so that the machines go.
func TestHibernationGoesOnWithoutFleets(t *testing.T) {
	const left = 1500 * time.Millisecond
	lease := fleetLease(0)
	var asked atomic.Int32
	kubeconfig := shootWith(t, func() coordinationv1.LeaseList {
		asked.Add(1)
		return coordinationv1.LeaseList{Items: []coordinationv1.Lease{*lease}}
	})
	seed := fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--a--b", Name: kubeapiserver.InternalKubeconfigSecret},
		Data:       map[string][]byte{secrets.DataKeyKubeconfig: kubeconfig},
	}).Build()
	started := time.Now()
	// The API's times have seconds only; this one has not been through it.
	since := metav1.NewTime(started.Add(left - clusterv1alpha1.DrainTimeout))
	w := &Workers{Plan: &plan.Plan{}, Seed: seed, Log: logr.Discard(), Since: &since}
	w.Plan.Namespace = "shoot--a--b"
	if err := w.waitForFleets(t.Context()); err != nil {
		t.Errorf("the shoot does not fall asleep: %v", err)
	}
	if took := time.Since(started); took < left {
		t.Errorf("waited %s, although the fleet has a right to %s", took, left)
	}
	if asked.Load() == 0 {
		t.Error("the shoot was not asked for Leases")
	}
}

// shootWith starts an API server that has these Leases and nothing else, and returns its kubeconfig.
func shootWith(t *testing.T, leases func() coordinationv1.LeaseList) []byte {
	t.Helper()
	return shootAnswering(t, func(*http.Request) any {
		list := leases()
		list.TypeMeta = metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "LeaseList"}
		return list
	})
}

// shootAnswering starts an API server that answers with objects, and returns its kubeconfig.
func shootAnswering(t *testing.T, answer func(*http.Request) any) []byte {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer(r))
	}))
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "shoot"
	config.Contexts["shoot"] = &clientcmdapi.Context{Cluster: "shoot", AuthInfo: "admin"}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.Clusters["shoot"] = &clientcmdapi.Cluster{
		Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{
			Type: "CERTIFICATE", Bytes: server.Certificate().Raw,
		}),
	}
	kubeconfig, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}
