// Package workloadidentity keeps tokens of the garden's WorkloadIdentities in Secrets of the seed: Tokens writes such a
// Secret, and Renewer replaces its token long before it expires. What the Secrets are for is decided by those who ask
// for them.
package workloadidentity

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apply"
)

// Validity is for how long tokens are requested; the garden may grant less. They are replaced after four fifths of what
// is granted.
const Validity = 6 * time.Hour

// Tokens requests tokens in the garden and writes them to Secrets of the seed. All of such a Secret is applied at once
// and has one owner: when it is applied with other credentials later, nothing of the token stays.
type Tokens struct {
	// Garden is a client of the garden, Seed one of the seed.
	Garden, Seed client.Client
	// Now is the time.
	Now func() time.Time
}

// Use says who uses an identity and where its token is to be.
type Use struct {
	// Identity is the WorkloadIdentity in the garden.
	Identity client.ObjectKey
	// Secret in the seed.
	Secret client.ObjectKey
	// Role is the Secret's label gardener.cloud/role; empty for none.
	Role string
	// Referenced says that a Shoot refers to the identity in spec.resources.
	Referenced bool
	// For is the object for whose sake the token is requested.
	For securityv1alpha1.ContextObject
}

// Deploy writes the Secret. A token of the identity stays until it is to be renewed.
func (t *Tokens) Deploy(ctx context.Context, use Use) error {
	existing := &corev1.Secret{}
	if err := t.Seed.Get(ctx, use.Secret, existing); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", use.Secret, err)
	}
	return t.write(ctx, use, existing)
}

// write applies the Secret as it is to be; existing is as it is, empty if there is none. If it has changed since then,
// the API server refuses.
func (t *Tokens) write(ctx context.Context, use Use, existing *corev1.Secret) error {
	identity := &securityv1alpha1.WorkloadIdentity{}
	if err := t.Garden.Get(ctx, use.Identity, identity); err != nil {
		return fmt.Errorf("reading WorkloadIdentity %s of the garden: %w", use.Identity, err)
	}
	desired, err := use.secret(identity)
	if err != nil {
		return err
	}
	if t.keeps(existing, desired, identity) {
		desired.Data[securityv1alpha1.DataKeyToken] = existing.Data[securityv1alpha1.DataKeyToken]
		copyAnnotation(existing, desired, securityv1alpha1.AnnotationWorkloadIdentityTokenRenewTimestamp)
	} else if err := t.request(ctx, use, identity, desired); err != nil {
		return err
	}
	object, err := apply.ToUnstructured(t.Seed.Scheme(), desired)
	if err != nil {
		return err
	}
	object.SetResourceVersion(existing.ResourceVersion)
	return apply.Unstructured(ctx, t.Seed, apply.Gardenlet, object)
}

// keeps tells whether the token that there is may stay: it is one of this identity as it is now, requested for the same
// sake, and not due.
func (t *Tokens) keeps(existing, desired *corev1.Secret, identity *securityv1alpha1.WorkloadIdentity) bool {
	for _, key := range []string{
		securityv1alpha1.AnnotationWorkloadIdentityNamespace, securityv1alpha1.AnnotationWorkloadIdentityName,
		securityv1alpha1.AnnotationWorkloadIdentityContextObject,
	} {
		if existing.Annotations[key] != desired.Annotations[key] {
			return false
		}
	}
	claims, err := claimsOf(existing.Data[securityv1alpha1.DataKeyToken])
	return err == nil && claims.Subject == identity.Status.Sub &&
		slices.Equal(claims.Audience, identity.Spec.Audiences) && !due(existing, t.Now())
}

// request puts a new token into the Secret.
func (t *Tokens) request(ctx context.Context, use Use, identity *securityv1alpha1.WorkloadIdentity,
	secret *corev1.Secret) error {
	request := &securityv1alpha1.TokenRequest{Spec: securityv1alpha1.TokenRequestSpec{
		ContextObject: &use.For, ExpirationSeconds: new(int64(Validity / time.Second)),
	}}
	now := t.Now()
	if err := t.Garden.SubResource("token").Create(ctx, identity, request); err != nil {
		return fmt.Errorf("requesting a token of WorkloadIdentity %s: %w", use.Identity, err)
	}
	lifetime := request.Status.ExpirationTimestamp.Sub(now)
	if request.Status.Token == "" || lifetime <= 0 {
		return fmt.Errorf("the garden's token of WorkloadIdentity %s is of no use: it expires at %s, and it is %s now",
			use.Identity, request.Status.ExpirationTimestamp.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	secret.Data[securityv1alpha1.DataKeyToken] = []byte(request.Status.Token)
	secret.Annotations[securityv1alpha1.AnnotationWorkloadIdentityTokenRenewTimestamp] = now.Add(lifetime * 4 / 5).
		UTC().Format(time.RFC3339)
	return nil
}

// secret is the Secret without a token.
func (u Use) secret(identity *securityv1alpha1.WorkloadIdentity) (*corev1.Secret, error) {
	sake, err := json.Marshal(u.For)
	if err != nil {
		return nil, err
	}
	const purpose = securityv1alpha1.LabelPurposeWorkloadIdentityTokenRequestor
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: u.Secret.Namespace, Name: u.Secret.Name,
			Labels: map[string]string{
				securityv1alpha1.LabelPurpose:                  purpose,
				securityv1alpha1.LabelWorkloadIdentityProvider: identity.Spec.TargetSystem.Type,
			},
			Annotations: map[string]string{
				securityv1alpha1.AnnotationWorkloadIdentityNamespace:     u.Identity.Namespace,
				securityv1alpha1.AnnotationWorkloadIdentityName:          u.Identity.Name,
				securityv1alpha1.AnnotationWorkloadIdentityContextObject: string(sake),
			},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{},
	}
	if u.Role != "" {
		secret.Labels[gardencorev1beta1.GardenRole] = u.Role
	}
	if u.Referenced {
		secret.Labels[securityv1alpha1.LabelWorkloadIdentityReferenced] = "true"
	}
	if config := identity.Spec.TargetSystem.ProviderConfig; config != nil && len(config.Raw) > 0 {
		secret.Data[securityv1alpha1.DataKeyConfig] = config.Raw
	}
	return secret, nil
}

// useOf reads from a Secret what Deploy wrote to it.
func useOf(secret *corev1.Secret) (Use, error) {
	use := Use{
		Identity: client.ObjectKey{
			Namespace: secret.Annotations[securityv1alpha1.AnnotationWorkloadIdentityNamespace],
			Name:      secret.Annotations[securityv1alpha1.AnnotationWorkloadIdentityName],
		},
		Secret:     client.ObjectKeyFromObject(secret),
		Role:       secret.Labels[gardencorev1beta1.GardenRole],
		Referenced: secret.Labels[securityv1alpha1.LabelWorkloadIdentityReferenced] == "true",
	}
	if use.Identity.Namespace == "" || use.Identity.Name == "" {
		return Use{}, fmt.Errorf("annotations %s and %s must name a WorkloadIdentity of the garden",
			securityv1alpha1.AnnotationWorkloadIdentityNamespace, securityv1alpha1.AnnotationWorkloadIdentityName)
	}
	if err := json.Unmarshal([]byte(secret.Annotations[securityv1alpha1.AnnotationWorkloadIdentityContextObject]),
		&use.For); err != nil {
		return Use{}, fmt.Errorf("annotation %s must be a context object as JSON: %w",
			securityv1alpha1.AnnotationWorkloadIdentityContextObject, err)
	}
	return use, nil
}

// due tells whether the token of a Secret is to be replaced. One that says nothing about it is.
func due(secret *corev1.Secret, now time.Time) bool {
	at, err := time.Parse(time.RFC3339,
		secret.Annotations[securityv1alpha1.AnnotationWorkloadIdentityTokenRenewTimestamp])
	return err != nil || !now.Before(at)
}

// claims are those that tell whose a token is and for whom.
type claims struct {
	Subject  string   `json:"sub"`
	Audience []string `json:"aud"`
}

// claimsOf reads a token without verifying it: the garden has issued it.
func claimsOf(token []byte) (claims, error) {
	var found claims
	parts := strings.Split(string(token), ".")
	if len(parts) != 3 {
		return found, fmt.Errorf("a token has 3 parts, not %d", len(parts))
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return found, err
	}
	return found, json.Unmarshal(payload, &found)
}

func copyAnnotation(from, to *corev1.Secret, key string) {
	if value, found := from.Annotations[key]; found {
		to.Annotations[key] = value
	}
}
