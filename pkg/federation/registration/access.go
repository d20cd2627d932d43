package registration

import (
	"context"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// accessRules: a fleet applies whatever kinds its users propagate, and asks how the cluster is.
func accessRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}},
	}
}

// GrantAccess creates in a member a namespace and a service account that may do what a fleet does there, both named
// access. All of it belongs to the ClusterRole of that name.
func GrantAccess(ctx context.Context, member client.Client, access string) (types.NamespacedName, error) {
	return grant(ctx, member, access, accessRules())
}

func grant(ctx context.Context, member client.Client, access string,
	rules []rbacv1.PolicyRule) (types.NamespacedName, error) {
	account := types.NamespacedName{Namespace: access, Name: access}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: access}}
	if err := ensure(ctx, member, role, nil, func() { role.Rules = rules }); err != nil {
		return account, err
	}
	owner := &metav1.OwnerReference{
		APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID,
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: access}}
	if err := ensure(ctx, member, namespace, owner, func() {}); err != nil {
		return account, err
	}
	serviceAccount := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name},
	}
	if err := ensure(ctx, member, serviceAccount, owner,
		func() { serviceAccount.AutomountServiceAccountToken = new(false) }); err != nil {
		return account, err
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: access}}
	return account, ensure(ctx, member, binding, owner, func() {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: access}
		binding.Subjects = []rbacv1.Subject{
			{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name},
		}
	})
}

func ensure(ctx context.Context, c client.Client, object client.Object, owner *metav1.OwnerReference,
	fill func()) error {
	_, err := controllerutil.CreateOrPatch(ctx, c, object, func() error {
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[managedByLabel] = managedBy
		object.SetLabels(labels)
		if owner != nil {
			object.SetOwnerReferences([]metav1.OwnerReference{*owner})
		}
		fill()
		return nil
	})
	if err != nil {
		return fmt.Errorf("%T %s in the member: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// RevokeAccess removes what GrantAccess or GrantImpersonation created: the ClusterRole at once, the rest by the
// member's garbage collection.
func RevokeAccess(ctx context.Context, member client.Client, access string) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: access}}
	err := member.Delete(ctx, role, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ClusterRole %s in the member: %w", access, err)
	}
	return nil
}

// RequestToken asks a member for a token. The member may give it a shorter life.
func RequestToken(ctx context.Context, member client.Client, account types.NamespacedName,
	lifetime time.Duration) (*authenticationv1.TokenRequestStatus, error) {
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(lifetime.Seconds()))},
	}
	serviceAccount := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name},
	}
	if err := member.SubResource("token").Create(ctx, serviceAccount, request); err != nil {
		return nil, fmt.Errorf("asking the member for a token of service account %s: %w", account, err)
	}
	return &request.Status, nil
}

// SetToken writes a token and all that its renewal needs into a Secret of the fleet.
func SetToken(secret *corev1.Secret, token *authenticationv1.TokenRequestStatus, account types.NamespacedName,
	lifetime time.Duration, now time.Time) {
	metav1.SetMetaDataLabel(&secret.ObjectMeta, JoinedLabel, "true")
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, ServiceAccountAnnotation, account.String())
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, LifetimeAnnotation, lifetime.String())
	renew := now.Add(token.ExpirationTimestamp.Sub(now) / 2)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, RenewAnnotation, renew.UTC().Format(time.RFC3339))
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[clusterv1alpha1.SecretToken] = []byte(token.Token)
}

// Renewal says what a Secret's token has to be renewed with; false while there is nothing to do.
func Renewal(secret *corev1.Secret, now time.Time) (account types.NamespacedName, lifetime time.Duration, due bool) {
	account, found := AccountOf(secret)
	if !found {
		return account, 0, false
	}
	renew, err := time.Parse(time.RFC3339, secret.Annotations[RenewAnnotation])
	if err == nil && now.Before(renew) {
		return account, 0, false
	}
	lifetime, err = time.ParseDuration(secret.Annotations[LifetimeAnnotation])
	if err != nil || lifetime < 10*time.Minute {
		lifetime = DefaultTokenLifetime
	}
	return account, lifetime, true
}

// AccountOf tells the service account of a Secret that the fleet cares for.
func AccountOf(secret *corev1.Secret) (types.NamespacedName, bool) {
	namespace, name, found := strings.Cut(secret.Annotations[ServiceAccountAnnotation], "/")
	return types.NamespacedName{Namespace: namespace, Name: name},
		found && namespace != "" && name != "" && !strings.Contains(name, "/") && secret.Labels[JoinedLabel] == "true"
}
