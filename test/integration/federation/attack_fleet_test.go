package federation

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// asFederation has the credential of the federation process, and says to be somebody else.
func (w *world) asFederation(t *testing.T, who rest.ImpersonationConfig) client.Client {
	t.Helper()
	config := rest.CopyConfig(w.fleetConfig)
	config.BearerToken, config.Impersonate = fleetToken, who
	c, err := client.New(config, client.Options{Scheme: w.fleet.Scheme(), Mapper: w.fleet.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Who takes the federation process over says to be an administrator of the fleet, one of Kubernetes' own users, or a
// service account.
func TestAttackFederationActsAsOthers(t *testing.T) {
	w := newWorld(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "crowned"}}
	if err := w.fleet.Create(ctx, account); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.fleet.Delete(ctx, account) })
	grantTo(t, w.fleet, "crowned",
		rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name})
	grantTo(t, w.fleet, "project-admins",
		rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		rbacGroup("gardener.cloud:project:admins"))
	for name, who := range map[string]rest.ImpersonationConfig{
		"a master":            {UserName: "admin", Groups: []string{"system:masters"}},
		"an administrator":    {UserName: "admin", Groups: []string{"gardener.cloud:project:admins"}},
		"who stands for them": {UserName: "admin", Groups: []string{fleetv1alpha1.MastersGroup}},
		"the API server":      {UserName: "system:apiserver"},
		"a controller":        {UserName: "system:kube-controller-manager"},
		"a service account":   {UserName: "system:serviceaccount:kube-system:crowned"},
		"one with groups": {
			UserName: "system:serviceaccount:kube-system:crowned", Groups: []string{"system:masters"},
		},
		"a node": {UserName: "system:node:n", Groups: []string{"system:nodes"}},
		"an extra field": {
			UserName: "admin", Groups: []string{"gardener.cloud:project:admins"},
			Extra: map[string][]string{"example.com/a": {"b"}},
		},
	} {
		c := w.asFederation(t, who)
		for what, attack := range map[string]func() error{
			"writes ClusterRoleBindings": func() error {
				return c.Create(ctx, &rbacv1.ClusterRoleBinding{
					ObjectMeta: metav1.ObjectMeta{GenerateName: "attack-"},
					RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
					Subjects:   []rbacv1.Subject{rbacUser("mallory")},
				})
			},
			"takes tokens": func() error {
				return c.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
			},
			"reads Secrets": func() error { return c.List(ctx, &corev1.SecretList{}) },
			"writes Secrets": func() error {
				return c.Create(ctx, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "attack-"},
				})
			},
			"reads who it is":       func() error { return c.Create(ctx, &authenticationv1.SelfSubjectReview{}) },
			"asks for certificates": func() error { return c.Create(ctx, attackRequest(t)) },
			"writes statuses": func() error {
				return c.SubResource("status").Update(ctx,
					&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
			},
		} {
			if err := attack(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "impersonat") {
				t.Errorf("the federation as %s %s: got %v", name, what, err)
			}
		}
		config := rest.CopyConfig(w.fleetConfig)
		config.BearerToken, config.Impersonate = fleetToken, who
		for _, path := range []string{
			"/metrics", "/apis/cluster.karmada.io/v1/clusters/member1/proxy/api",
			"/apis/cluster.karmada.io/v1alpha1/clusters/member1/proxy/api",
		} {
			if _, err := answer(config, http.MethodGet, path); !apierrors.IsForbidden(err) {
				t.Errorf("the federation as %s reads %s: got %v", name, path, err)
			}
		}
	}
	for name, who := range map[string]rest.ImpersonationConfig{
		"a master":         {UserName: "admin", Groups: []string{"system:masters"}},
		"a node":           {UserName: "system:node:n"},
		"one of the nodes": {UserName: "system:node:n", Groups: []string{"system:nodes"}},
		"one with groups": {
			UserName: "system:serviceaccount:kube-system:crowned", Groups: []string{"system:masters"},
		},
		"one with an extra": {
			UserName: "system:serviceaccount:kube-system:crowned", Extra: map[string][]string{"example.com/a": {"b"}},
		},
	} {
		if err := w.asFederation(t, who).List(ctx, &clusterv1alpha1.ClusterList{}); !apierrors.IsForbidden(err) {
			t.Errorf("the federation lists Clusters as %s: got %v", name, err)
		}
	}
}

func attackRequest(t *testing.T) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := registration.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	request, err := registration.Request{
		Member: "attack", UID: "x", ID: "x", Lifetime: registration.DefaultCertificateLifetime,
	}.SigningRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// Who takes the federation process over uses its own rights for what they are not meant for.
func TestAttackFederationBeyondItsWork(t *testing.T) {
	w := newWorld(t)
	c := w.asFederation(t, rest.ImpersonationConfig{})
	request := attackRequest(t)
	if err := w.fleet.Create(ctx, request); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.fleet.Delete(ctx, request) })
	refusedWith(t, registration.Approve(ctx, c, request, "Attack", "a certificate of any user"),
		`cannot update resource "certificatesigningrequests/approval"`)
	failed := request.DeepCopy()
	failed.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "Attack"},
	}
	refusedWith(t, c.Status().Update(ctx, failed), "user not permitted to sign requests")
	victim := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.newNamespace(t)}}
	refusedWith(t, c.Delete(ctx, victim), "the namespaces of members' Works only")
	refusedWith(t, c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "attack"}}),
		"the namespaces of members' Works only")
	if err := w.fleet.Get(ctx, client.ObjectKeyFromObject(victim), victim); err != nil {
		t.Fatal(err)
	}
	refusedWith(t, c.Status().Update(ctx, victim), "the federation writes no status")
	refusedWith(t, c.Create(ctx, &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1.attack.example.com"},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: "attack.example.com", Version: "v1", GroupPriorityMinimum: 1, VersionPriority: 1,
			InsecureSkipTLSVerify: true,
			Service: &apiregistrationv1.ServiceReference{
				Namespace: clusterv1alpha1.CredentialsNamespace, Name: "member-api",
			},
		},
	}), "the federation serves the API of Clusters only")
	for what, attack := range map[string]func() error{
		"requests": func() error { return c.Create(ctx, attackRequest(t)) },
		"tokens": func() error {
			return c.SubResource("token").Create(ctx,
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "federation"}},
				&authenticationv1.TokenRequest{})
		},
	} {
		if err := attack(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// Users and service accounts read and write Clusters in Karmada's version with their own rights, which admission sees.
func TestClustersInTheNameOfWhoAsks(t *testing.T) {
	w := newWorld(t)
	w.startWithMemberAPI(t)
	namespace := w.newNamespace(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keeper"}}
	if err := w.fleet.Create(ctx, account); err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := w.fleet.SubResource("token").Create(ctx, account, request); err != nil {
		t.Fatal(err)
	}
	asKeeper := rest.CopyConfig(w.fleetConfig)
	asKeeper.BearerToken = request.Status.Token
	for name, who := range map[string]struct {
		config  *rest.Config
		subject rbacv1.Subject
		user    string
	}{
		"user": {w.asAlice(), rbacUser("alice"), "alice"},
		"service-account": {
			asKeeper, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "keeper"},
			"system:serviceaccount:" + namespace + ":keeper",
		},
	} {
		t.Run(name, func(t *testing.T) { w.keepsClusters(t, who.config, who.subject, who.user) })
	}
}

func (w *world) keepsClusters(t *testing.T, config *rest.Config, subject rbacv1.Subject, user string) {
	const path = "/apis/cluster.karmada.io/v1alpha1/clusters"
	_, err := answer(config, http.MethodGet, path)
	refusedWith(t, err, fmt.Sprintf("User %q cannot list resource", user))
	grantTo(t, w.fleet, "keeps-clusters", rbacv1.PolicyRule{
		APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters", "clusters/status"},
		Verbs: []string{"get", "list", "create", "patch", "delete"},
	}, subject)
	eventually(t, user+" lists Clusters", func() error { _, err := answer(config, http.MethodGet, path); return err })
	theirs, err := w.getCluster("member1")
	if err != nil {
		t.Fatal(err)
	}
	write := func() error {
		c, err := rest.UnversionedRESTClientFor(unversioned(config))
		if err != nil {
			return err
		}
		body :=
			fmt.Sprintf(`{"apiVersion":"cluster.karmada.io/v1alpha1","kind":"Cluster","metadata":{"name":"kept"},"spec":{"syncMode":"Pull","secretRef":{"namespace":%q,"name":%q}}}`,
				theirs.Spec.SecretRef.Namespace, theirs.Spec.SecretRef.Name)
		answered, err := c.Post().RequestURI(path+"?dryRun=All").SetHeader("Content-Type",
			"application/json").Body([]byte(body)).Do(context.Background()).Raw()
		if err != nil {
			return fmt.Errorf("%w: %s", err, answered)
		}
		return nil
	}
	refusedWith(t, write(), "who names it, or changes the address, must be allowed to get it")
	grantTo(t, w.fleet, "reads-credentials",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}, subject)
	eventually(t, user+" may name a Secret that they may read", write)
}
