package agent

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/reply"
)

var theCluster = schema.GroupResource{Group: clusterv1alpha1.GroupVersion.Group, Resource: "clusters"}

// answering answers whoever asks for a Cluster with an error, or, without one, with the Cluster.
func answering(t *testing.T, by authority, cluster *clusterv1alpha1.Cluster, refusal error) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if refusal != nil {
			reply.Refusal(w, refusal)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(cluster)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{*by.issue(t)}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// invitedBy is the agent of a member of a fleet, which it knows by its authority.
func invitedBy(t *testing.T, fleet authority, asked *httptest.Server, leaving bool) *agent {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	way, err := newWay(&rest.Config{Host: asked.URL, TLSClientConfig: rest.TLSClientConfig{CAData: bundle(fleet)}})
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(clusterv1alpha1.GroupVersion.WithKind("Cluster"), meta.RESTScopeRoot)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: credentialsSecret}}
	if leaving {
		secret.Data = map[string][]byte{leavingKey: []byte("true")}
	}
	member := fake.NewClientBuilder().WithObjects(secret).Build()
	a := &agent{store: store{member, "n"}, member: member, invited: &invitation{member: "m1"}, way: way}
	if a.fleet, err = client.New(way.config, client.Options{Scheme: scheme, Mapper: mapper}); err != nil {
		t.Fatal(err)
	}
	return a
}

// An agent has left when it was told before that it would, and its Cluster is gone, with which its rights go.
func TestWhoHasLeft(t *testing.T) {
	fleet := newAuthority(t, time.Now().Add(-time.Hour))
	there := &clusterv1alpha1.Cluster{
		TypeMeta: metav1.TypeMeta{
			APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster",
		},
		ObjectMeta: metav1.ObjectMeta{Name: "m1"},
	}
	going := there.DeepCopy()
	going.DeletionTimestamp = new(metav1.NewTime(time.Unix(1000, 0)))
	notFound := apierrors.NewNotFound(theCluster, "m1")
	forbidden := apierrors.NewForbidden(theCluster, "m1", errors.New("no rights"))
	for name, tc := range map[string]struct {
		leaving bool
		cluster *clusterv1alpha1.Cluster
		refusal error
		left    bool
		// knows, afterwards, that it is to leave.
		knows bool
	}{
		"it is not found":           {true, nil, notFound, true, true},
		"it has no rights any more": {true, nil, forbidden, true, true},
		"it is on its way":          {true, going, nil, false, true},
		"it stays after all":        {true, there, nil, false, false},
		"the fleet is not well":     {true, nil, apierrors.NewInternalError(errors.New("no etcd")), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := invitedBy(t, fleet, answering(t, fleet, tc.cluster, tc.refusal), tc.leaving)
			// What cannot be found out is no sign.
			left, _ := a.hasLeft(t.Context())
			secret, err := a.store.read(t.Context(), credentialsSecret)
			if err != nil {
				t.Fatal(err)
			}
			if knows := len(secret.Data[leavingKey]) > 0; left != tc.left || knows != tc.knows {
				t.Errorf("left is %t, and it knows that it leaves: %t", left, knows)
			}
		})
	}
}

// Nobody has an agent remove itself by refusing it: neither a fleet that has forgotten its members, restored from a
// backup for example, nor a stranger at the fleet's address.
func TestAttackRefusalsMakeNoAgentLeave(t *testing.T) {
	fleet, other := newAuthority(t, time.Now().Add(-time.Hour)), newAuthority(t, time.Now().Add(-time.Hour))
	for name, refusal := range map[string]error{
		"unknown":      apierrors.NewNotFound(theCluster, "m1"),
		"forbidden":    apierrors.NewForbidden(theCluster, "m1", errors.New("no rights")),
		"unauthorized": apierrors.NewUnauthorized("who are you?"),
	} {
		if left, err := invitedBy(t, fleet, answering(t, fleet, nil, refusal), false).hasLeft(t.Context()); left ||
			err != nil {
			t.Errorf("%s, an agent that was not told that it leaves: got %t, %v", name, left, err)
		}
		if left, err := invitedBy(t, fleet, answering(t, other, nil, refusal), true).hasLeft(t.Context()); left ||
			err == nil {
			t.Errorf("%s by a stranger: got %t, %v", name, left, err)
		}
	}
}
