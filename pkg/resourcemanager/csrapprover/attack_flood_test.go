package csrapprover

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/resourcemanager/target"
)

// countingMachines is a seed with one machine, node n1, that counts who asks for it.
type countingMachines struct {
	client.Reader
	asked atomic.Int64
}

func (c *countingMachines) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	c.asked.Add(1)
	list.(*metav1.PartialObjectMetadataList).Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "m1", Labels: map[string]string{nodeLabel: "n1"}}}}
	return nil
}

// hostileShoot is the API server of a shoot whose owner made many requests that look like a node's, for an address that it does not have.
type hostileShoot struct {
	requests    int
	nodesAsked  atomic.Int64
	certificate []byte
}

func (s *hostileShoot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer := func(text string) { _, _ = w.Write([]byte(text)) }
	switch {
	case r.URL.Path == "/api":
		answer(`{"kind": "APIVersions", "versions": ["v1"]}`)
	case r.URL.Path == "/apis":
		answer(`{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`)
	case r.URL.Path == "/api/v1":
		answer(`{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "nodes", "singularName": "node", "namespaced": false, "kind": "Node", "verbs": ["get"]}]}`)
	case strings.HasPrefix(r.URL.Path, "/api/v1/nodes/"):
		s.nodesAsked.Add(1)
		answer(`{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}}`)
	case r.URL.Query().Get("watch") != "":
		for i := range s.requests {
			csr := certificatesv1.CertificateSigningRequest{
				TypeMeta:   metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"},
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("csr-", i), CreationTimestamp: metav1.Now()},
				Spec: certificatesv1.CertificateSigningRequestSpec{
					SignerName: certificatesv1.KubeletServingSignerName, Username: "system:node:n1", Groups: []string{nodesGroup},
					Usages: []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth}, Request: s.certificate,
				},
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": csr})
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

// The cluster-admin of a shoot may leave any number of requests pending. They must not be what the seed is busy with.
func TestAttackFloodOfPendingRequests(t *testing.T) {
	const seconds, perSecond = 2, 20
	shoot := &hostileShoot{requests: 2000, certificate: encode(t, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:n1", Organization: []string{nodesGroup}}, IPAddresses: []net.IP{net.ParseIP("10.0.0.1")},
	})}
	server := httptest.NewServer(shoot)
	t.Cleanup(server.Close)
	const kubeconfig = `{"current-context": "c", "clusters": [{"name": "c", "cluster": {"server": %q}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}]}`
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: target.SecretName}, Data: map[string][]byte{target.SecretKey: fmt.Appendf(nil, kubeconfig, server.URL)},
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	seed := &countingMachines{}
	reconciler := &Reconciler{Machines: seed, Targets: target.NewStaticRegistry(fake.NewClientBuilder().WithObjects(secret).Build()), Context: ctx, Again: func(string) {}}
	if _, err := reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(secret)}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(seconds * time.Second)
	if asked := seed.asked.Load(); asked == 0 || asked > seconds*perSecond {
		t.Errorf("%d requests cost the seed %d requests in %d s, want some, and at most %d a second", shoot.requests, asked, seconds, perSecond)
	}
	if asked := shoot.nodesAsked.Load(); asked == 0 || asked > seconds*perSecond {
		t.Errorf("%d requests cost the shoot's API server %d requests in %d s, want some, and at most %d a second", shoot.requests, asked, seconds, perSecond)
	}
}
