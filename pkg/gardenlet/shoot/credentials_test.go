package shoot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/flow"
)

// withCredentials is an operation in whose garden there is a Secret, an InternalSecret, a ConfigMap and a WorkloadIdentity, all of
// the same name.
func withCredentials(t *testing.T) *Operation {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, gardencorev1beta1.AddToScheme, securityv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	o := operation(t, func(*Inputs) {})
	meta := metav1.ObjectMeta{Namespace: o.Plan.ShootNamespace, Name: "infra"}
	issue := func(_ context.Context, _ client.Client, _ string, _, body client.Object, _ ...client.SubResourceCreateOption) error {
		request, ok := body.(*securityv1alpha1.TokenRequest)
		if !ok {
			return fmt.Errorf("asked with a %T", body)
		}
		sake := request.Spec.ContextObject
		request.Status.Token = fmt.Sprintf("for %s %s/%s %s", sake.Kind, *sake.Namespace, sake.Name, sake.UID)
		request.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
		return nil
	}
	o.Garden = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{SubResourceCreate: issue}).WithObjects(
		&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"password": []byte("x")}},
		&gardencorev1beta1.InternalSecret{ObjectMeta: meta, Data: map[string][]byte{"internal": []byte("x")}},
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"text": "x"}},
		&securityv1alpha1.WorkloadIdentity{ObjectMeta: meta, Spec: securityv1alpha1.WorkloadIdentitySpec{TargetSystem: securityv1alpha1.TargetSystem{Type: "aws"}}},
	).Build()
	o.Seed = fake.NewClientBuilder().WithScheme(scheme).Build()
	return o
}

// keys returns the keys of a Secret of the control plane, sorted.
func keys(t *testing.T, o *Operation, name string) []string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := o.Seed.Get(t.Context(), o.key(name), secret); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(secret.Data))
}

func TestCredentialsOfAllKindsFollowEachOther(t *testing.T) {
	o := withCredentials(t)
	for _, test := range []struct{ kind, want string }{
		{"Secret", "password"}, {"WorkloadIdentity", "token"}, {"InternalSecret", "internal"}, {"WorkloadIdentity", "token"}, {"Secret", "password"},
	} {
		o.Plan.Credentials = &corev1.ObjectReference{Kind: test.kind, Namespace: o.Plan.ShootNamespace, Name: "infra"}
		if err := o.deployCredentials(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := keys(t, o, "cloudprovider"); !slices.Equal(got, []string{test.want}) {
			t.Errorf("%s: keys are %v, want %s", test.kind, got, test.want)
		}
	}
}

func TestTokensAreRequestedForTheShoot(t *testing.T) {
	o := withCredentials(t)
	record := &RecordPlan{SecretName: "dnsrecord-s-external", Credentials: corev1.ObjectReference{Kind: "WorkloadIdentity", Namespace: o.Plan.ShootNamespace, Name: "infra"}}
	if err := o.deploy(t.Context(), credentials{from: record.Credentials, to: record.SecretName}); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{}
	if err := o.Seed.Get(t.Context(), o.key(record.SecretName), secret); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("for Shoot %s/%s %s", o.Plan.ShootNamespace, o.Plan.ShootName, o.Plan.UID)
	if got := string(secret.Data["token"]); got != want {
		t.Errorf("token = %s, want %s", got, want)
	}
}

func TestMissingCredentialsAreTheUsersMistake(t *testing.T) {
	o := withCredentials(t)
	for _, test := range []struct{ kind, name, want string }{
		{"Secret", "gone", "the Secret " + o.Plan.ShootNamespace + "/gone does not exist"},
		{"InternalSecret", "gone", "the InternalSecret " + o.Plan.ShootNamespace + "/gone does not exist"},
		{"WorkloadIdentity", "gone", "the WorkloadIdentity " + o.Plan.ShootNamespace + "/gone does not exist"},
		{"ConfigMap", "infra", "refer to a Secret, an InternalSecret or a WorkloadIdentity"},
	} {
		err := o.deploy(t.Context(), credentials{from: corev1.ObjectReference{Kind: test.kind, Namespace: o.Plan.ShootNamespace, Name: test.name}, to: "x"})
		if err == nil || !strings.Contains(err.Error(), test.want) || !flow.IsPermanent(err) || !slices.Contains(codesOf(err), gardencorev1beta1.ErrorConfigurationProblem) {
			t.Errorf("%s: error = %v, codes %v, want %q as a mistake in the configuration", test.kind, err, codesOf(err), test.want)
		}
	}
}

func TestReferences(t *testing.T) {
	o := withCredentials(t)
	refer := func(kinds ...string) error {
		o.Plan.References = nil
		for _, kind := range kinds {
			o.Plan.References = append(o.Plan.References, gardencorev1beta1.NamedResourceReference{
				Name: "my-" + kind, ResourceRef: autoscalingv1.CrossVersionObjectReference{Kind: kind, Name: "infra"},
			})
		}
		return o.deployReferences(t.Context())
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
	if err := o.Seed.Get(t.Context(), o.key("ref-infra"), &corev1.ConfigMap{}); err != nil {
		t.Error(err)
	}
	if err := refer("Secret"); err != nil {
		t.Fatal(err)
	}
	if err := o.Seed.Get(t.Context(), o.key("workload-identity-ref-infra"), &corev1.Secret{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the token that nobody refers to: %v, want it gone", err)
	}
	keys(t, o, "ref-infra")
	if err := refer("InternalSecret"); err == nil || !strings.Contains(err.Error(), `spec.resources "my-InternalSecret"`) || !strings.Contains(err.Error(), "only Secret, ConfigMap and WorkloadIdentity") {
		t.Errorf("error = %v", err)
	}
}

func TestTokensThatAreNotRenewedAreSeen(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := addHealthSchemes(scheme); err != nil {
		t.Fatal(err)
	}
	care := &Care{Seed: healthyControlPlane(scheme, "ns"), TokenProblem: func(namespace string) string { return "Secret cloudprovider in " + namespace }}
	condition := care.controlPlane(t.Context(), "ns", &gardencorev1beta1.ShootSpec{})
	if condition.Status != gardencorev1beta1.ConditionFalse || condition.Reason != "WorkloadIdentityTokenNotRenewed" || !strings.Contains(condition.Message, "cloudprovider in ns") {
		t.Errorf("condition is %+v", condition)
	}
	care.TokenProblem = func(string) string { return "" }
	if condition := care.controlPlane(t.Context(), "ns", &gardencorev1beta1.ShootSpec{}); condition.Status != gardencorev1beta1.ConditionTrue {
		t.Errorf("condition is %+v", condition)
	}
}

// addHealthSchemes adds the kinds by which the health of a control plane is judged.
func addHealthSchemes(scheme *runtime.Scheme) error {
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	return resourcesv1alpha1.AddToScheme(scheme)
}

// healthyControlPlane is a seed with what a workerless control plane needs.
func healthyControlPlane(scheme *runtime.Scheme, namespace string) client.Client {
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, name := range []string{"etcd-main", "etcd-events"} {
		builder.WithObjects(&appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       appsv1.StatefulSetSpec{Replicas: ptr.To[int32](1)},
			Status:     appsv1.StatefulSetStatus{Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1},
		})
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager"} {
		builder.WithObjects(&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)},
			Status:     appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
		})
	}
	return builder.Build()
}
