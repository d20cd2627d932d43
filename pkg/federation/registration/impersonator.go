package registration

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// ImpersonatorName is that of everything by which a fleet's users act in a member, beside what AccessName names; and
// with the name of a member, that of the Secret in the fleet with the token.
func ImpersonatorName(name string) string { return name + "-impersonator" }

const (
	// NamesAnnotation says what a fleet's users and groups are called in a member: by its owner on the ClusterRole of
	// the impersonator there, from where the fleet copies it to the Secret with the token; by people on Secrets with
	// tokens that are theirs.
	NamesAnnotation = "federation.trellis.garden/user-names"
	// NamesSame leaves names of users as they are, but for those that mean something by themselves in clusters, such as
	// system:masters. All other values, and none, have all names begin with NamePrefix.
	NamesSame = "same"

	// adminsBoundAnnotation, on the ClusterRole of the impersonator, is there once the fleet has let its administrators
	// be those of the member. Its owner may take that back.
	adminsBoundAnnotation = "federation.trellis.garden/admins-bound"
	// clusterAdmin is a ClusterRole of Kubernetes.
	clusterAdmin = "cluster-admin"
)

// adminGroups may do everything in a fleet.
var adminGroups = []string{
	user.SystemPrivilegedGroup, gardencorev1beta1.ShootGroupSystemAdmins, gardencorev1beta1.ShootGroupProjectAdmins,
}

// impersonatorRules let nobody do anything but be somebody else: what the fleet's users may do in the member, its own
// roles say. No user of a fleet is a service account of a member. Where Kubernetes knows impersonation by modes, nobody
// becomes one of system:masters or a node either.
func impersonatorRules(kubernetes string) []rbacv1.PolicyRule {
	parsed, err := version.ParseGeneric(kubernetes)
	if err != nil || parsed.LessThan(impersonatesByModes) {
		return plainRules()
	}
	return modeRules()
}

// plainRules are for members whose Kubernetes knows no modes.
func plainRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"users", "groups"}, Verbs: []string{"impersonate"}},
	}
}

func modeRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{authenticationv1.GroupName}, Resources: []string{"users", "groups"},
			Verbs: []string{"impersonate:" + userInfo},
		},
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: ImpersonateOn(userInfo)},
		{
			NonResourceURLs: []string{"*"},
			Verbs:           impersonateOn(userInfo, "delete", "get", "head", "options", "patch", "post", "put"),
		},
	}
}

// impersonatesByModes is the version of Kubernetes from which on it does so by default.
var impersonatesByModes = version.MustParseGeneric("1.36")

// userInfo is the mode of impersonation for all that are neither service accounts nor nodes.
const userInfo = "user-info"

// ImpersonateOn are the verbs that let somebody do anything with a resource as somebody else, by a mode of
// impersonation of Kubernetes.
func ImpersonateOn(mode string) []string {
	return impersonateOn(mode, "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
}

func impersonateOn(mode string, verbs ...string) []string {
	var result []string
	for _, verb := range verbs {
		result = append(result, "impersonate-on:"+mode+":"+verb)
	}
	return result
}

// AdminsName is that of the ClusterRoleBinding by which administrators of a fleet are such of a member; name is that of
// GrantImpersonation.
func AdminsName(name string) string { return name + "-admins" }

// FollowOwner lets the administrators of a fleet, who hold its credentials for the member anyway, be administrators
// there, once: the owner may remove the binding. It tells what the owner says about names, in the form of
// NamesAnnotation.
func FollowOwner(ctx context.Context, member client.Client, name, fleetID string) (names string, err error) {
	role := &rbacv1.ClusterRole{}
	if err := member.Get(ctx, client.ObjectKey{Name: name}, role); err != nil {
		return "", fmt.Errorf("reading ClusterRole %s in the member: %w", name, err)
	}
	if role.Annotations[adminsBoundAnnotation] != "" {
		return role.Annotations[NamesAnnotation], nil
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: AdminsName(name)}}
	owner := &metav1.OwnerReference{
		APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID,
	}
	if err := ensure(ctx, member, binding, owner, func() {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterAdmin}
		binding.Subjects = adminSubjects(NamePrefix(fleetID))
	}); err != nil {
		return "", err
	}
	before := role.DeepCopy()
	metav1.SetMetaDataAnnotation(&role.ObjectMeta, adminsBoundAnnotation, "true")
	if err := member.Patch(ctx, role, client.MergeFrom(before)); err != nil {
		return "", fmt.Errorf("annotating ClusterRole %s in the member: %w", name, err)
	}
	return role.Annotations[NamesAnnotation], nil
}

// adminSubjects are the administrators of a fleet, as they are called in members.
func adminSubjects(prefix string) []rbacv1.Subject {
	var subjects []rbacv1.Subject
	for _, group := range adminGroups {
		subjects = append(subjects,
			rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: prefix + group})
	}
	return subjects
}

// GrantImpersonation creates in a member a namespace and a service account that may impersonate, both called name. All
// of it belongs to the ClusterRole of that name, which RevokeAccess removes. What the account may is up to the member's
// version of Kubernetes.
func GrantImpersonation(ctx context.Context, member client.Client,
	name, kubernetes string) (types.NamespacedName, error) {
	return grant(ctx, member, name, impersonatorRules(kubernetes))
}

// Impersonator reads the Secret with the token by which users act in a member; nil if there is none. A Secret of that
// name that somebody else made is an error.
func Impersonator(ctx context.Context, fleet client.Reader, key types.NamespacedName) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := fleet.Get(ctx, key, secret); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if _, ours := AccountOf(secret); !ours {
		return nil, fmt.Errorf("secret %s: is not one that the fleet made for requests to the member; rename it, "+
			"and name it in spec.impersonatorSecretRef", key)
	}
	return secret, nil
}

// NewImpersonator is a Secret without its token.
func NewImpersonator(key types.NamespacedName) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}
