package workloadidentity

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
)

const namespace = "shoot--demo--s"

var start = time.Unix(1_800_000_000, 0)

// setting is a garden that issues tokens, and a seed.
type setting struct {
	tokens   *Tokens
	identity *securityv1alpha1.WorkloadIdentity
	now      time.Time
	// requests that the garden has answered, and the error that it answers with instead.
	requests []securityv1alpha1.TokenRequestSpec
	refusal  error
}

func newSetting(t *testing.T) *setting {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, securityv1alpha1.AddToScheme, gardencorev1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := &setting{now: start, identity: &securityv1alpha1.WorkloadIdentity{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "aws"},
		Spec: securityv1alpha1.WorkloadIdentitySpec{
			Audiences: []string{"sts"},
			TargetSystem: securityv1alpha1.TargetSystem{
				Type: "aws", ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"role":"a"}`)},
			},
		},
		Status: securityv1alpha1.WorkloadIdentityStatus{Sub: "gardener.cloud:workloadidentity:garden-demo:aws:1"},
	}}
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "s"}}
	shoot.Spec.CredentialsBindingName, shoot.Spec.SeedName, shoot.Status.TechnicalID = new("cloud"), new("seed"),
		namespace
	binding := &securityv1alpha1.CredentialsBinding{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "garden-demo", Name: "cloud"},
		CredentialsRef: corev1.ObjectReference{Kind: kind, Namespace: "garden-demo", Name: "aws"},
	}
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "seed"}}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.identity, shoot, binding,
		seed).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: s.issue,
	}).Build()
	s.tokens = &Tokens{
		Garden: garden, Seed: fake.NewClientBuilder().WithScheme(scheme).Build(),
		Now: func() time.Time { return s.now },
	}
	return s
}

// issue answers requests as the garden does, with tokens that count the requests.
func (s *setting) issue(ctx context.Context, c client.Client, _ string, object, body client.Object,
	_ ...client.SubResourceCreateOption) error {
	if s.refusal != nil {
		return s.refusal
	}
	identity := &securityv1alpha1.WorkloadIdentity{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), identity); err != nil {
		return err
	}
	request, ok := body.(*securityv1alpha1.TokenRequest)
	if !ok {
		return fmt.Errorf("asked with a %T", body)
	}
	s.requests = append(s.requests, request.Spec)
	payload, err := json.Marshal(map[string]any{
		"sub": identity.Status.Sub, "aud": identity.Spec.Audiences, "jti": len(s.requests),
	})
	if err != nil {
		return err
	}
	request.Status.Token = "head." + base64.RawURLEncoding.EncodeToString(payload) + ".signature"
	request.Status.ExpirationTimestamp = metav1.NewTime(s.now.Add(time.Duration(*request.Spec.ExpirationSeconds) *
		time.Second))
	return nil
}

func (s *setting) use() Use {
	return Use{
		Identity: client.ObjectKeyFromObject(s.identity),
		Secret:   client.ObjectKey{Namespace: namespace, Name: "cloudprovider"}, Role: "cloudprovider",
		For: securityv1alpha1.ContextObject{
			Kind: "Shoot", APIVersion: "core.gardener.cloud/v1beta1", Name: "s", Namespace: new("garden-demo"),
			UID: "uid",
		},
	}
}

func (s *setting) deploy(t *testing.T, use Use) *corev1.Secret {
	t.Helper()
	if err := s.tokens.Deploy(t.Context(), use); err != nil {
		t.Fatal(err)
	}
	return s.secret(t)
}

func (s *setting) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := s.tokens.Seed.Get(t.Context(), s.use().Secret, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestSecretsAreAsExtensionsExpectThem(t *testing.T) {
	s := newSetting(t)
	secret := s.deploy(t, s.use())
	const prefix = "workloadidentity.security.gardener.cloud/"
	for key, want := range map[string]string{
		prefix + "namespace": "garden-demo", prefix + "name": "aws",
		prefix +
			"context-object": `{"kind":"Shoot","apiVersion":"core.gardener.cloud/v1beta1","name":"s","namespace":"garden-demo","uid":"uid"}`,
		prefix + "token-renew-timestamp": start.Add(4*time.Hour + 48*time.Minute).UTC().Format(time.RFC3339),
	} {
		if got := secret.Annotations[key]; got != want {
			t.Errorf("annotation %s = %s, want %s", key, got, want)
		}
	}
	for key, want := range map[string]string{
		"security.gardener.cloud/purpose": "workload-identity-token-requestor", prefix + "provider": "aws",
		"gardener.cloud/role": "cloudprovider",
	} {
		if got := secret.Labels[key]; got != want {
			t.Errorf("label %s = %s, want %s", key, got, want)
		}
	}
	if string(secret.Data["config"]) != `{"role":"a"}` || !strings.HasPrefix(string(secret.Data["token"]), "head.") ||
		len(secret.Data) != 2 {
		t.Errorf("data = %q", secret.Data)
	}
	if len(s.requests) != 1 || *s.requests[0].ExpirationSeconds != 6*3600 || s.requests[0].ContextObject.UID != "uid" {
		t.Errorf("requested %+v", s.requests)
	}
}

func TestTokensStayUntilTheyAreDue(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *setting, use *Use)
		fresh  bool
	}{
		"nothing": {func(*setting, *Use) {}, false},
		"shortly": {func(s *setting, _ *Use) { s.now = start.Add(4 * time.Hour) }, false},
		"due":     {func(s *setting, _ *Use) { s.now = start.Add(4*time.Hour + 48*time.Minute) }, true},
		"settings": {
			func(s *setting, _ *Use) { s.identity.Spec.TargetSystem.ProviderConfig.Raw = []byte(`{"role":"b"}`) },
			false,
		},
		"audiences":   {func(s *setting, _ *Use) { s.identity.Spec.Audiences = []string{"other"} }, true},
		"created new": {func(s *setting, _ *Use) { s.identity.Status.Sub += "2" }, true},
		"other sake":  {func(_ *setting, use *Use) { use.For.UID = "another" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetting(t)
			use := s.use()
			before := s.deploy(t, use)
			test.change(s, &use)
			if err := s.tokens.Garden.Update(t.Context(), s.identity); err != nil {
				t.Fatal(err)
			}
			after := s.deploy(t, use)
			if fresh := string(before.Data["token"]) != string(after.Data["token"]); fresh != test.fresh {
				t.Errorf("a new token: %v, want %v", fresh, test.fresh)
			}
			if want := s.identity.Spec.TargetSystem.ProviderConfig.Raw; string(after.Data["config"]) != string(want) {
				t.Errorf("config = %s, want %s", after.Data["config"], want)
			}
		})
	}
}

func TestNothingOfATokenStaysBesideOtherCredentials(t *testing.T) {
	s := newSetting(t)
	s.deploy(t, s.use())
	s.now = start.Add(5 * time.Hour)
	renewer := &Renewer{Tokens: s.tokens, Log: logr.Discard()}
	if err := renewer.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "cloudprovider",
			Labels: map[string]string{gardencorev1beta1.GardenRole: "cloudprovider"},
		},
		Data: map[string][]byte{"password": []byte("x")},
	}
	if err := component.Apply(t.Context(), s.tokens.Seed, other); err != nil {
		t.Fatal(err)
	}
	secret := s.secret(t)
	if len(secret.Data) != 1 || len(secret.Labels) != 1 || len(secret.Annotations) != 0 {
		t.Errorf("the Secret has data %q, labels %v, annotations %v", secret.Data, secret.Labels, secret.Annotations)
	}
	s.now = start.Add(50 * time.Hour)
	if err := renewer.Renew(t.Context()); err != nil || len(s.requests) != 2 {
		t.Errorf("%d requests, %v", len(s.requests), err)
	}
}

func TestTokensAreRenewed(t *testing.T) {
	s := newSetting(t)
	before := s.deploy(t, s.use())
	renewer := &Renewer{Tokens: s.tokens, Log: logr.Discard()}
	renew := func() *corev1.Secret {
		t.Helper()
		if err := renewer.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s.secret(t)
	}
	if secret := renew(); secret.ResourceVersion != before.ResourceVersion {
		t.Error("the Secret was written before the token was due")
	}
	s.now, s.refusal = start.Add(5*time.Hour), apierrors.NewServiceUnavailable("no key")
	renew()
	if problem := renewer.Problem(namespace); !strings.Contains(problem, "Secret cloudprovider") ||
		!strings.Contains(problem, "no key") {
		t.Errorf("problem = %q, want it to name the Secret and the reason", problem)
	}
	if problem := renewer.Problem("elsewhere"); problem != "" {
		t.Errorf("another namespace has the problem %q", problem)
	}
	s.refusal = nil
	after := renew()
	if problem := renewer.Problem(namespace); problem != "" {
		t.Errorf("problem = %q after it has gone", problem)
	}
	if string(after.Data["token"]) == string(before.Data["token"]) ||
		after.Labels["gardener.cloud/role"] != "cloudprovider" || string(after.Data["config"]) != `{"role":"a"}` {
		t.Errorf("the Secret is %+v", after)
	}
	if len(s.requests) != 2 || *s.requests[1].ContextObject.Namespace != "garden-demo" ||
		s.requests[1].ContextObject.UID != "uid" {
		t.Errorf("requested %+v", s.requests)
	}
}

func TestProblems(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *setting, secret *corev1.Secret)
		want   string
	}{
		"no identity is named": {func(_ *setting, secret *corev1.Secret) {
			delete(secret.Annotations, securityv1alpha1.AnnotationWorkloadIdentityName)
		}, "must name a WorkloadIdentity"},
		"no object is named": {func(_ *setting, secret *corev1.Secret) {
			secret.Annotations[securityv1alpha1.AnnotationWorkloadIdentityContextObject] = "shoot"
		}, "must be a context object"},
		"the identity is gone": {func(_ *setting, secret *corev1.Secret) {
			secret.Annotations[securityv1alpha1.AnnotationWorkloadIdentityName] = "gone"
		}, "Shoot garden-demo/s does not use WorkloadIdentity garden-demo/gone"},
		"the garden refuses": {
			func(s *setting, _ *corev1.Secret) { s.refusal = errors.New("forbidden") },
			"requesting a token of WorkloadIdentity garden-demo/aws: forbidden",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetting(t)
			secret := s.deploy(t, s.use())
			secret.Annotations[securityv1alpha1.AnnotationWorkloadIdentityTokenRenewTimestamp] = "soon"
			test.change(s, secret)
			if err := s.tokens.Seed.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			renewer := &Renewer{Tokens: s.tokens, Log: logr.Discard()}
			if err := renewer.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
			if problem := renewer.Problem(namespace); !strings.Contains(problem, test.want) {
				t.Errorf("problem = %q, want %q", problem, test.want)
			}
		})
	}
}
