package registration

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ImpersonatorName is that of everything by which a fleet's users act in a member, beside what AccessName names; and with the
// name of a member, that of the Secret in the fleet with the token.
func ImpersonatorName(name string) string { return name + "-impersonator" }

// impersonatorRules let nobody do anything but be somebody else: what the fleet's users may do in the member, its own roles say.
func impersonatorRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"users", "groups", "serviceaccounts"}, Verbs: []string{"impersonate"}}}
}

// GrantImpersonation creates in a member a namespace and a service account that may impersonate, both called name. All of it belongs to
// the ClusterRole of that name, which RevokeAccess removes.
func GrantImpersonation(ctx context.Context, member client.Client, name string) (types.NamespacedName, error) {
	return grant(ctx, member, name, impersonatorRules())
}

// Impersonator reads the Secret with the token by which users act in a member; nil if there is none. A Secret of that name that somebody
// else made is an error.
func Impersonator(ctx context.Context, fleet client.Reader, key types.NamespacedName) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := fleet.Get(ctx, key, secret); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if _, ours := AccountOf(secret); !ours {
		return nil, fmt.Errorf("secret %s: is not one that the fleet made for requests to the member; rename it, and name it in spec.impersonatorSecretRef", key)
	}
	return secret, nil
}

// NewImpersonator is a Secret without its token.
func NewImpersonator(key types.NamespacedName) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}
