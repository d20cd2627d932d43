package federation

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// attacksByName has alice of the fleet, who may use the proxy, profit from what the member grants to another alice, to its own masters and
// service accounts; then the member's owner says that names are the same.
func attacksByName(t *testing.T, edge client.Client, base string) {
	grantTo(t, edge, "another-alice", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}}, rbacUser("alice"))
	owner := &rbacv1.ClusterRole{}
	fleetID, err := registration.Identity(ctx, fleet)
	if err != nil {
		t.Fatal(err)
	}
	name := registration.ImpersonatorName(registration.AccessName(fleetID))
	if err := edge.Get(ctx, client.ObjectKey{Name: name}, owner); err != nil {
		t.Fatal(err)
	}
	for _, rule := range owner.Rules {
		if strings.Join(rule.Resources, " ") != "users groups" {
			t.Errorf("the impersonator may be %v", rule)
		}
	}
	listing := func() error { _, err := answer(asAlice(), http.MethodGet, base+"/api/v1/secrets"); return err }
	eventually(t, "she is somebody else there", func() error {
		if err := listing(); err == nil || !strings.Contains(err.Error(), `User "`+registration.NamePrefix(fleetID)+`alice" cannot list resource "secrets"`) {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
	before := owner.DeepCopy()
	metav1.SetMetaDataAnnotation(&owner.ObjectMeta, registration.NamesAnnotation, registration.NamesSame)
	if err := edge.Patch(ctx, owner, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the owner lets her be the same", listing)
	before = owner.DeepCopy()
	delete(owner.Annotations, registration.NamesAnnotation)
	if err := edge.Patch(ctx, owner, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the owner takes it back", func() error {
		if listing() == nil {
			return fmt.Errorf("she still lists Secrets")
		}
		return nil
	})
}
