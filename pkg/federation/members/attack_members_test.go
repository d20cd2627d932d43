package members

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
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

// A hostile member serves more kinds than a Cluster can hold.
func TestAttackManyAPIs(t *testing.T) {
	var many []clusterv1alpha1.APIEnablement
	for i := range 100 {
		api := clusterv1alpha1.APIEnablement{GroupVersion: fmt.Sprintf("group-%d/v1", i)}
		for range 100 {
			api.Resources = append(api.Resources, clusterv1alpha1.APIResource{Name: strings.Repeat("x", 60), Kind: strings.Repeat("y", 60)})
		}
		many = append(many, api)
	}
	kept := many[:within(many, maxAPIs)]
	text, err := json.Marshal(kept)
	if err != nil || len(text) > maxAPIs+4096 || len(kept) == 0 {
		t.Errorf("%d groups, %d bytes, %v", len(kept), len(text), err)
	}
	if got := within(many[:1], maxAPIs); got != 1 {
		t.Errorf("what fits is cut to %d", got)
	}
}
