package gardenlet

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/conditions"
)

// testCredentials creates a shoot whose credentials are those of a WorkloadIdentity, lets its token be due, and gives
// it an InternalSecret and a Secret instead.
func testCredentials(t *testing.T) {
	identity := &securityv1alpha1.WorkloadIdentity{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "infra"},
		Spec: securityv1alpha1.WorkloadIdentitySpec{Audiences: []string{"cloud"},
			TargetSystem: securityv1alpha1.TargetSystem{
				Type: "local", ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"user":"demo"}`)},
			}},
	}
	create(t, identity,
		&gardencorev1beta1.InternalSecret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "infra"},
			Data:       map[string][]byte{"internal": []byte("x")},
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "infra"},
			Data:       map[string][]byte{"password": []byte("x")},
		},
	)
	for kind, apiVersion := range map[string]string{
		"WorkloadIdentity": "security.gardener.cloud/v1alpha1", "InternalSecret": "core.gardener.cloud/v1beta1",
		"Secret": "v1",
	} {
		create(t, &securityv1alpha1.CredentialsBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: strings.ToLower(kind)},
			Provider:   securityv1alpha1.CredentialsBindingProvider{Type: "local"},
			CredentialsRef: corev1.ObjectReference{
				APIVersion: apiVersion, Kind: kind, Namespace: "garden-demo", Name: "infra",
			},
		})
	}
	shoot := example(t, "shoot-member1")
	shoot.Name, shoot.Spec.DNS = "tokens", nil
	shoot.Annotations = map[string]string{gardencorev1beta1.ShootSkipReadiness: "true"}
	shoot.Spec.CredentialsBindingName = new("workloadidentity")
	shoot.Spec.Resources = []gardencorev1beta1.NamedResourceReference{{Name: "identity",
		ResourceRef: autoscalingv1.CrossVersionObjectReference{
			APIVersion: "security.gardener.cloud/v1alpha1", Kind: "WorkloadIdentity", Name: "infra",
		}}}
	create(t, shoot)
	succeeded(t, shoot)
	for _, name := range []string{"cloudprovider", "workload-identity-ref-infra"} {
		checkIdentityToken(t, identity, shoot, name)
	}
	tokenIsRenewed(t, shoot)
	tokensAreForOwnShoots(t, identity, shoot)
	err := c.Delete(context.Background(), identity)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "shoot garden-demo/tokens") {
		t.Errorf("error = %v, want it to name the shoot that uses the identity", err)
	}
	for _, next := range []struct{ binding, key string }{
		{"internalsecret", "internal"}, {"workloadidentity", "config token"}, {"secret", "password"},
	} {
		patch := fmt.Sprintf(`{"spec":{"credentialsBindingName":%q,"resources":null}}`, next.binding)
		if err := c.Patch(context.Background(), shoot,
			client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
		succeeded(t, shoot)
		if got := slices.Sorted(maps.Keys(seedSecret(t, shoot, "cloudprovider").Data)); strings.Join(got,
			" ") != next.key {
			t.Errorf("%s: the keys are %v, want %s", next.binding, got, next.key)
		}
	}
	unused := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Status.TechnicalID, Name: "workload-identity-ref-infra"},
	}
	if err := get(unused); !apierrors.IsNotFound(err) {
		t.Errorf("the token that nobody refers to: %v, want it gone", err)
	}
	deleted(t, shoot)
}

// seedSecret reads a Secret of the control plane.
func seedSecret(t *testing.T, shoot *gardencorev1beta1.Shoot, name string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Status.TechnicalID, Name: name}}
	if err := get(secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// checkIdentityToken looks into the token of a Secret.
func checkIdentityToken(t *testing.T, identity *securityv1alpha1.WorkloadIdentity, shoot *gardencorev1beta1.Shoot,
	name string) {
	t.Helper()
	secret := seedSecret(t, shoot, name)
	parts := strings.Split(string(secret.Data["token"]), ".")
	if len(parts) != 3 {
		t.Fatalf("%s: the token %q is no JWT", name, secret.Data["token"])
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims struct {
		Sub      string
		Aud      []string
		Exp, Iat int64
		Garden   struct {
			Shoot struct{ Name, Namespace, UID string }
			Seed  struct{ Name string }
		} `json:"gardener.cloud"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	if claims.Sub != identity.Status.Sub || claims.Aud[0] != "cloud" || claims.Exp-claims.Iat != 6*3600 ||
		claims.Garden.Shoot.Name != shoot.Name || claims.Garden.Shoot.UID != string(shoot.UID) ||
		claims.Garden.Seed.Name != "local" {
		t.Errorf("%s: the token says %s", name, payload)
	}
	if string(secret.Data["config"]) != `{"user":"demo"}` {
		t.Errorf("%s: config = %s", name, secret.Data["config"])
	}
}

// tokenIsRenewed lets a token be due, and spoils what its Secret says about it: the shoot's status tells.
func tokenIsRenewed(t *testing.T, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	before := seedSecret(t, shoot, "cloudprovider")
	annotate := func(patch string) {
		t.Helper()
		patch = `{"metadata":{"annotations":{` + patch + `}}}`
		if err := c.Patch(context.Background(), before.DeepCopy(),
			client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	const prefix = `"workloadidentity.security.gardener.cloud/`
	annotate(prefix + `name":"gone",` + prefix + `token-renew-timestamp":"2020-01-01T00:00:00Z"`)
	told := func(want bool) func() error {
		return func() error {
			if err := get(shoot); err != nil {
				return err
			}
			found := conditions.Get(shoot.Status.Conditions, gardencorev1beta1.ShootControlPlaneHealthy)
			if found == nil || (found.Reason == "WorkloadIdentityTokenNotRenewed" &&
				strings.Contains(found.Message, "garden-demo/gone")) != want {
				return fmt.Errorf("condition is %+v", found)
			}
			return nil
		}
	}
	eventually(t, told(true))
	annotate(prefix + `name":"infra"`)
	eventually(t, func() error {
		if after := seedSecret(t, shoot, "cloudprovider"); string(after.Data["token"]) == string(before.Data["token"]) {
			return fmt.Errorf("the token is the old one, to be renewed at %s",
				after.Annotations[securityv1alpha1.AnnotationWorkloadIdentityTokenRenewTimestamp])
		}
		return nil
	})
	eventually(t, told(false))
}

// tokensAreForOwnShoots asks as a gardenlet for what it must not get.
func tokensAreForOwnShoots(t *testing.T, identity *securityv1alpha1.WorkloadIdentity, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	sake := func(name string) *securityv1alpha1.ContextObject {
		return &securityv1alpha1.ContextObject{
			Kind: "Shoot", APIVersion: "core.gardener.cloud/v1beta1", Namespace: &shoot.Namespace, Name: name,
			UID: shoot.UID,
		}
	}
	for name, test := range map[string]struct {
		seed    string
		context *securityv1alpha1.ContextObject
		want    func(error) bool
	}{
		"for its shoot":        {"local", sake(shoot.Name), func(err error) bool { return err == nil }},
		"for nothing":          {"local", nil, apierrors.IsForbidden},
		"for no shoot":         {"local", sake("nobody"), apierrors.IsForbidden},
		"of another gardenlet": {"other", sake(shoot.Name), apierrors.IsForbidden},
	} {
		gardenlet, err := env.ClientFor(gardencorev1beta1.SeedUserNamePrefix+test.seed, gardencorev1beta1.SeedsGroup)
		if err != nil {
			t.Fatal(err)
		}
		request := &securityv1alpha1.TokenRequest{Spec: securityv1alpha1.TokenRequestSpec{ContextObject: test.context}}
		if err := gardenlet.SubResource("token").Create(context.Background(), identity.DeepCopy(),
			request); !test.want(err) {
			t.Errorf("a token %s: %v", name, err)
		}
	}
}
