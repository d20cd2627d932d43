package federation

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// attacksByName has alice of the fleet, who may use the proxy, profit from what the member grants to another alice, to its own masters and
// service accounts; then the member's owner says that names are the same.
func attacksByName(t *testing.T, edge client.Client, base string) {
	grantTo(t, fleet, "alice-through", rbacv1.PolicyRule{
		APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters/proxy"}, ResourceNames: []string{"proxied"}, Verbs: []string{"get"},
	}, rbacUser("alice"))
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

// Who may write Clusters, and read no Secret, has the fleet send it Secrets: of members, and of the fleet itself.
func TestAttackSecretsByClusters(t *testing.T) {
	startFederation(t)
	grantTo(t, fleet, "alice-writes-clusters", rbacv1.PolicyRule{
		APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters"}, Verbs: []string{"get", "create", "patch"},
	}, rbacUser("alice"))
	alice, err := client.New(asAlice(), client.Options{Scheme: fleet.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "alice may write Clusters", func() error {
		return alice.Get(ctx, client.ObjectKey{Name: "member1"}, &clusterv1alpha1.Cluster{})
	})
	theirs, err := getCluster("member1")
	if err != nil {
		t.Fatal(err)
	}
	mine := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: clusterv1alpha1.ClusterSpec{
		SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://mine.example.com", InsecureSkipTLSVerification: true, SecretRef: theirs.Spec.SecretRef,
	}}
	refusedWith(t, alice.Create(ctx, mine.DeepCopy()), "spec.secretRef", "must be allowed to get it")
	mine.Spec.SecretRef, mine.Spec.ImpersonatorSecretRef = nil, theirs.Spec.SecretRef
	refusedWith(t, alice.Create(ctx, mine.DeepCopy()), "spec.impersonatorSecretRef", "must be allowed to get it")
	for what, change := range map[string]func(*clusterv1alpha1.ClusterSpec){
		"another address": func(s *clusterv1alpha1.ClusterSpec) { s.APIEndpoint = "https://mine.example.com" },
		"a proxy":         func(s *clusterv1alpha1.ClusterSpec) { s.ProxyURL = "http://mine.example.com" },
	} {
		changed := theirs.DeepCopy()
		change(&changed.Spec)
		err := alice.Patch(ctx, changed, client.MergeFrom(theirs))
		if err == nil || !strings.Contains(err.Error(), "must be allowed to get it") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	labelled := theirs.DeepCopy()
	metav1.SetMetaDataLabel(&labelled.ObjectMeta, "alices", "true")
	if err := alice.Patch(ctx, labelled, client.MergeFrom(theirs)); err != nil {
		t.Errorf("what sends no Secret anywhere: %v", err)
	}
	mine.Spec.ImpersonatorSecretRef, mine.Spec.APIEndpoint = nil, "http://mine.example.com"
	refusedWith(t, alice.Create(ctx, mine), "must begin with https://")
}
