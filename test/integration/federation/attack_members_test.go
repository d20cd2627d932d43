package federation

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// attacksByName has alice of the fleet, who may use the proxy, profit from what the member grants to another alice, to
// its own masters and service accounts; then the member's owner says that names are the same.
func (w *world) attacksByName(t *testing.T, edge client.Client, base string) {
	grantTo(t, w.fleet, "alice-through", rbacv1.PolicyRule{
		APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters/proxy"},
		ResourceNames: []string{"proxied"}, Verbs: []string{"get"},
	}, rbacUser("alice"))
	grantTo(t, edge, "another-alice",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}},
		rbacUser("alice"))
	owner := &rbacv1.ClusterRole{}
	fleetID, err := registration.Identity(ctx, w.fleet)
	if err != nil {
		t.Fatal(err)
	}
	name := registration.ImpersonatorName(registration.AccessName(fleetID))
	if err := edge.Get(ctx, client.ObjectKey{Name: name}, owner); err != nil {
		t.Fatal(err)
	}
	listing := func() error { _, err := answer(w.asAlice(), http.MethodGet, base+"/api/v1/secrets"); return err }
	eventually(t, "she is somebody else there", func() error {
		if err := listing(); err == nil ||
			!strings.Contains(err.Error(),
				`User "`+registration.NamePrefix(fleetID)+`alice" cannot list resource "secrets"`) {
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

// attacksByImpersonator uses the token by which the fleet's users act in a member for those whom the fleet never is
// there.
func (w *world) attacksByImpersonator(t *testing.T, config *rest.Config) {
	secret := &corev1.Secret{}
	if err := w.fleet.Get(ctx, client.ObjectKey{
		Namespace: clusterv1alpha1.CredentialsNamespace, Name: registration.ImpersonatorName("proxied"),
	}, secret); err != nil {
		t.Fatal(err)
	}
	for name, who := range map[string]rest.ImpersonationConfig{
		"itself":            {},
		"a master":          {UserName: "admin", Groups: []string{"system:masters"}},
		"a service account": {UserName: "system:serviceaccount:kube-system:generic-garbage-collector"},
		"a node":            {UserName: "system:node:n"},
		"an extra field":    {UserName: "alice", Extra: map[string][]string{"example.com/a": {"b"}}},
		"a user's UID":      {UserName: "alice", UID: "7"},
	} {
		attack := rest.CopyConfig(config)
		attack.BearerToken, attack.Impersonate = string(secret.Data[clusterv1alpha1.SecretToken]), who
		for _, path := range []string{"/api/v1/secrets", "/version"} {
			// Everybody may read the version as themselves.
			if _, err := answer(attack, http.MethodGet, path); !apierrors.IsForbidden(err) &&
				!(name == "itself" && path == "/version") {
				t.Errorf("the impersonator as %s reads %s: got %v", name, path, err)
			}
		}
	}
}

// Who may write Clusters, and read no Secret, has the fleet send it Secrets: of members, and of the fleet itself.
func TestAttackSecretsByClusters(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	grantTo(t, w.fleet, "alice-writes-clusters", rbacv1.PolicyRule{
		APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters"},
		Verbs: []string{"get", "create", "patch"},
	}, rbacUser("alice"))
	alice, err := client.New(w.asAlice(), client.Options{Scheme: w.fleet.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "alice may write Clusters", func() error {
		return alice.Get(ctx, client.ObjectKey{Name: "member1"}, &clusterv1alpha1.Cluster{})
	})
	theirs, err := w.getCluster("member1")
	if err != nil {
		t.Fatal(err)
	}
	mine := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: clusterv1alpha1.ClusterSpec{
		SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://mine.example.com", InsecureSkipTLSVerification: true,
		SecretRef: theirs.Spec.SecretRef,
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
