package credentials

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/errorcodes"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

// withCredentials is a copier in whose garden there is a Secret, an InternalSecret, a ConfigMap and a
// WorkloadIdentity, all of the same name.
func withCredentials(t *testing.T) *Copier {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, gardencorev1beta1.AddToScheme, securityv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	o := &Copier{Shoot: plantest.New(t).Identity}
	meta := metav1.ObjectMeta{Namespace: o.Shoot.ShootNamespace, Name: "infra"}
	issue := func(_ context.Context, _ client.Client, _ string, _, body client.Object,
		_ ...client.SubResourceCreateOption) error {
		request, ok := body.(*securityv1alpha1.TokenRequest)
		if !ok {
			return fmt.Errorf("asked with a %T", body)
		}
		sake := request.Spec.ContextObject
		request.Status.Token = fmt.Sprintf("for %s %s/%s %s", sake.Kind, *sake.Namespace, sake.Name, sake.UID)
		request.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
		return nil
	}
	o.Garden = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: issue,
	}).WithObjects(
		&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"password": []byte("x")}},
		&gardencorev1beta1.InternalSecret{ObjectMeta: meta, Data: map[string][]byte{"internal": []byte("x")}},
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"text": "x"}},
		&securityv1alpha1.WorkloadIdentity{
			ObjectMeta: meta, Spec: securityv1alpha1.WorkloadIdentitySpec{
				TargetSystem: securityv1alpha1.TargetSystem{Type: "aws"},
			},
		},
	).Build()
	o.Seed = fake.NewClientBuilder().WithScheme(scheme).Build()
	return o
}

// keys returns the keys of a Secret of the control plane, sorted.
func keys(t *testing.T, o *Copier, name string) []string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := o.Seed.Get(t.Context(), o.Shoot.Key(name), secret); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(secret.Data))
}

func TestCredentialsOfAllKindsFollowEachOther(t *testing.T) {
	o := withCredentials(t)
	for _, test := range []struct{ kind, want string }{
		{"Secret", "password"}, {"WorkloadIdentity", "token"}, {"InternalSecret", "internal"},
		{"WorkloadIdentity", "token"}, {"Secret", "password"},
	} {
		from := corev1.ObjectReference{Kind: test.kind, Namespace: o.Shoot.ShootNamespace, Name: "infra"}
		if err := o.DeployCloudProvider(t.Context(), from); err != nil {
			t.Fatal(err)
		}
		if got := keys(t, o, "cloudprovider"); !slices.Equal(got, []string{test.want}) {
			t.Errorf("%s: keys are %v, want %s", test.kind, got, test.want)
		}
	}
}

func TestTokensAreRequestedForTheShoot(t *testing.T) {
	o := withCredentials(t)
	record := &plan.Record{
		SecretName:  "dnsrecord-s-external",
		Credentials: corev1.ObjectReference{Kind: "WorkloadIdentity", Namespace: o.Shoot.ShootNamespace, Name: "infra"},
	}
	if err := o.Deploy(t.Context(), Secret{From: record.Credentials, To: record.SecretName}); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{}
	if err := o.Seed.Get(t.Context(), o.Shoot.Key(record.SecretName), secret); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("for Shoot %s/%s %s", o.Shoot.ShootNamespace, o.Shoot.ShootName, o.Shoot.UID)
	if got := string(secret.Data["token"]); got != want {
		t.Errorf("token = %s, want %s", got, want)
	}
}

func TestMissingCredentialsAreTheUsersMistake(t *testing.T) {
	o := withCredentials(t)
	for _, test := range []struct{ kind, name, want string }{
		{"Secret", "gone", "the Secret " + o.Shoot.ShootNamespace + "/gone does not exist"},
		{"InternalSecret", "gone", "the InternalSecret " + o.Shoot.ShootNamespace + "/gone does not exist"},
		{"WorkloadIdentity", "gone", "the WorkloadIdentity " + o.Shoot.ShootNamespace + "/gone does not exist"},
		{"ConfigMap", "infra", "refer to a Secret, an InternalSecret or a WorkloadIdentity"},
	} {
		err := o.Deploy(t.Context(), Secret{
			From: corev1.ObjectReference{Kind: test.kind, Namespace: o.Shoot.ShootNamespace, Name: test.name}, To: "x",
		})
		if err == nil || !strings.Contains(err.Error(), test.want) || !flow.IsPermanent(err) ||
			!slices.Contains(errorcodes.Of(err), gardencorev1beta1.ErrorConfigurationProblem) {
			t.Errorf("%s: error = %v, codes %v, want %q as a mistake in the configuration", test.kind, err,
				errorcodes.Of(err), test.want)
		}
	}
}

func TestReferences(t *testing.T) {
	o := withCredentials(t)
	refer := func(kinds ...string) error {
		var references []gardencorev1beta1.NamedResourceReference
		for _, kind := range kinds {
			references = append(references, gardencorev1beta1.NamedResourceReference{
				Name: "my-" + kind, ResourceRef: autoscalingv1.CrossVersionObjectReference{Kind: kind, Name: "infra"},
			})
		}
		return o.DeployReferences(t.Context(), references)
	}
	if err := refer("Secret", "ConfigMap", "WorkloadIdentity"); err != nil {
		t.Fatal(err)
	}
	if got := keys(t, o, "ref-infra"); !slices.Equal(got, []string{"password"}) {
		t.Errorf("the Secret's keys are %v", got)
	}
	if got := keys(t, o, "workload-identity-ref-infra"); !slices.Equal(got, []string{"token"}) {
		t.Errorf("the token's keys are %v", got)
	}
	if err := o.Seed.Get(t.Context(), o.Shoot.Key("ref-infra"), &corev1.ConfigMap{}); err != nil {
		t.Error(err)
	}
	if err := refer("Secret"); err != nil {
		t.Fatal(err)
	}
	if err := o.Seed.Get(t.Context(), o.Shoot.Key("workload-identity-ref-infra"),
		&corev1.Secret{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the token that nobody refers to: %v, want it gone", err)
	}
	keys(t, o, "ref-infra")
	if err := refer("InternalSecret"); err == nil ||
		!strings.Contains(err.Error(), `spec.resources "my-InternalSecret"`) ||
		!strings.Contains(err.Error(), "only Secret, ConfigMap and WorkloadIdentity") {
		t.Errorf("error = %v", err)
	}
}
