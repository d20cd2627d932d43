package registration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

func TestValidateName(t *testing.T) {
	for name, valid := range map[string]bool{
		"edge1": true, "a": true, strings.Repeat("a", 52): true,
		"": false, "Edge": false, "-a": false, "a-": false, "a.b": false, strings.Repeat("a", 53): false, "a/b": false,
	} {
		if err := ValidateName(name); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestValidateEndpoint(t *testing.T) {
	for endpoint, fits := range map[string]bool{
		"": true, "https://api.example.com": true, "https://[::1]:6443/prefix": true,
		"api.example.com": false, "http://api.example.com": false, "https://": false, "https://a:b@c": false,
		"https://a?b": false, "https://a#b": false,
	} {
		if err := validateEndpoint("--endpoint", endpoint); (err == nil) != fits {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}

func TestTokensAreRenewedAtHalfTime(t *testing.T) {
	now := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	account := types.NamespacedName{Namespace: "n", Name: "a"}
	secret := &corev1.Secret{}
	SetToken(secret, &authenticationv1.TokenRequestStatus{
		Token: "t", ExpirationTimestamp: metav1.NewTime(now.Add(10 * time.Hour)),
	}, account, 24*time.Hour, now)
	if string(secret.Data[clusterv1alpha1.SecretToken]) != "t" {
		t.Error("the token is stored")
	}
	if _, _, due := Renewal(secret, now.Add(5*time.Hour-time.Second)); due {
		t.Error("too early")
	}
	got, lifetime, due := Renewal(secret, now.Add(5*time.Hour))
	if !due || got != account || lifetime != 24*time.Hour {
		t.Errorf("got %v, %s, %v", got, lifetime, due)
	}
	delete(secret.Labels, JoinedLabel)
	if _, _, due := Renewal(secret, now.Add(100*time.Hour)); due {
		t.Error("credentials that others care for are left alone")
	}
}

func FuzzRenewal(f *testing.F) {
	f.Add("n/a", "2024-01-01T00:00:00Z", "1h")
	f.Add("a", "never", "-5m")
	f.Add("a/b/c", "", "")
	f.Fuzz(func(t *testing.T, account, renew, lifetime string) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{JoinedLabel: "true"},
			Annotations: map[string]string{
				ServiceAccountAnnotation: account, RenewAnnotation: renew, LifetimeAnnotation: lifetime,
			},
		}}
		got, life, due := Renewal(secret, time.Unix(1_800_000_000, 0))
		if due && (got.Namespace == "" || got.Name == "" || strings.Contains(got.Name, "/") || life < 10*time.Minute) {
			t.Errorf("%q: %v for %s", account, got, life)
		}
	})
}

func TestAuthorityOf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte("from file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		config   rest.TLSClientConfig
		endpoint string
		want     string
		err      string
	}{
		"data":           {rest.TLSClientConfig{CAData: []byte("data"), CAFile: file}, "", "data", ""},
		"file":           {rest.TLSClientConfig{CAFile: file}, "", "from file", ""},
		"no file":        {rest.TLSClientConfig{CAFile: file + "x"}, "", "", "no such file"},
		"any will do":    {rest.TLSClientConfig{Insecure: true}, "", "", ""},
		"another's name": {rest.TLSClientConfig{ServerName: "x"}, "", "", "--endpoint"},
		"a name, not the endpoint": {
			rest.TLSClientConfig{ServerName: "x", CAData: []byte("data")}, "https://x", "data", "",
		},
	} {
		got, err := authorityOf(&rest.Config{TLSClientConfig: tc.config}, tc.endpoint)
		if string(got) != tc.want || (tc.err == "") != (err == nil) ||
			err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func clients(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, rbacv1.AddToScheme, clusterv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func TestNamesAndClustersAreTakenOnce(t *testing.T) {
	member := func(name, id string, change ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       clusterv1alpha1.ClusterSpec{ID: id, SyncMode: clusterv1alpha1.Push},
		}
		for _, f := range change {
			f(c)
		}
		return c
	}
	fleet := clients(t, member("edge", "1"),
		member("shoot", "2", func(c *clusterv1alpha1.Cluster) {
			c.Labels = map[string]string{clusterv1alpha1.ShootLabel: "shoot"}
		}))
	for name, tc := range map[string]struct{ name, id, err string }{
		"new":                 {"other", "3", ""},
		"again":               {"edge", "1", ""},
		"under another name":  {"edge2", "1", `is a member already, as "edge"`},
		"a shoot once more":   {"edge2", "2", `is a member already, as "shoot"`},
		"a name that is used": {"edge", "3", "choose another name"},
		"a shoot's name":      {"shoot", "3", "is a shoot of the fleet's project"},
	} {
		err := checkName(context.Background(), fleet, tc.name, tc.id, clusterv1alpha1.Push)
		if (tc.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %v, want %q", name, err, tc.err)
		}
	}
}

func TestAccessIsRevokedByOneObject(t *testing.T) {
	ctx := context.Background()
	member := clients(t)
	access := AccessName("256054E2-1111-2222-3333-444444444444")
	if access != "trellis-fleet-256054e2" {
		t.Errorf("got %s", access)
	}
	account, err := GrantAccess(ctx, member, access)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: access}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: access}},
	} {
		if err := member.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		if owners := object.GetOwnerReferences(); len(owners) != 1 || owners[0].Kind != "ClusterRole" ||
			owners[0].Name != access {
			t.Errorf("%T: owners %+v", object, owners)
		}
	}
	for range 2 {
		if err := RevokeAccess(ctx, member, access); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.IgnoreNotFound(member.Get(ctx, client.ObjectKey{Name: access},
		&rbacv1.ClusterRole{})); err != nil {
		t.Error(err)
	}
}

// TestUnjoinTakesBackHalfAJoin: the credentials are there before the member is.
func TestUnjoinTakesBackHalfAJoin(t *testing.T) {
	secret := func(name string, labels map[string]string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.CredentialsNamespace, Name: name, Labels: labels},
		}
	}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "1"}}
	joined, foreign := secret("half", map[string]string{JoinedLabel: "true"}), secret("foreign", nil)
	fleet := clients(t, system, joined, foreign)
	var told string
	tell := func(format string, arguments ...any) { told = fmt.Sprintf(format, arguments...) }
	if err := Unjoin(t.Context(), fleet, "half", time.Minute, tell); err != nil ||
		!strings.Contains(told, AccessName("1")) {
		t.Errorf("told %q, got %v", told, err)
	}
	if err := fleet.Get(t.Context(), client.ObjectKeyFromObject(joined), joined); !apierrors.IsNotFound(err) {
		t.Errorf("the credentials: %v", err)
	}
	if err := Unjoin(t.Context(), fleet, "foreign", time.Minute, tell); err == nil ||
		fleet.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign) != nil {
		t.Errorf("a Secret of somebody else is not touched: %v", err)
	}
}

func TestUnjoinKeepsShoots(t *testing.T) {
	shoot := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: map[string]string{clusterv1alpha1.ShootLabel: "s"}},
	}
	fleet := clients(t, shoot)
	tell := func(format string, arguments ...any) { t.Logf(format, arguments...) }
	if err := Unjoin(context.Background(), fleet, "s", 0, tell); err == nil ||
		!strings.Contains(err.Error(), "federation.trellis.garden/join=false") {
		t.Errorf("got %v", err)
	}
	if err := Unjoin(context.Background(), fleet, "x", 0, tell); err == nil ||
		!strings.Contains(err.Error(), "trellisctl members") {
		t.Errorf("got %v", err)
	}
}

// A cluster may join or be registered again when the fleet has long told how it is.
func TestClustersAreWrittenAgain(t *testing.T) {
	surveyed := pullMember("m")
	surveyed.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
		AllocatableModelings: []clusterv1alpha1.AllocatableModeling{{Grade: 1, Count: 2}},
	}
	fleet := clients(t, surveyed)
	for range 2 {
		cluster, err := expect(t.Context(), fleet, Description{Name: "m", Region: "north"})
		if err != nil || cluster.Spec.Region != "north" || cluster.Status.ResourceSummary == nil {
			t.Errorf("got %+v, %v", cluster, err)
		}
	}
}
