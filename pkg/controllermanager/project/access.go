package project

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Cluster roles that hold the rights of members in the namespace of their project. The bootstrap creates them.
const (
	MemberRole                = "gardener.cloud:system:project-member"
	ViewerRole                = "gardener.cloud:system:project-viewer"
	ServiceAccountManagerRole = "gardener.cloud:system:project-serviceaccountmanager"
)

// verbManageMembers lets a member change who is a member.
const verbManageMembers = "manage-members"

// Access returns the roles and bindings of a project: for the project itself, and for its namespace. What they allow is
// listed in docs/authorization.md.
func Access(project *gardencorev1beta1.Project) []client.Object {
	owner := subjects(project, gardencorev1beta1.ProjectMemberOwner)
	admins := subjects(project, gardencorev1beta1.ProjectMemberAdmin, gardencorev1beta1.ProjectMemberOwner)
	uam := subjects(project, gardencorev1beta1.ProjectMemberUserAccessManager)
	viewers := subjects(project, gardencorev1beta1.ProjectMemberViewer)
	managers := subjects(project, gardencorev1beta1.ProjectMemberServiceAccountManager)
	namespace := NamespaceOf(project)
	return []client.Object{
		projectRole("gardener.cloud:system:project:", project, "get", "patch", "update", "delete", verbManageMembers),
		clusterRoleBinding("gardener.cloud:system:project:", project, owner),
		projectRole("gardener.cloud:system:project-member:", project, "get", "patch", "update", "delete"),
		clusterRoleBinding("gardener.cloud:system:project-member:", project, admins),
		projectRole("gardener.cloud:system:project-uam:", project, "get", "patch", "update", verbManageMembers),
		clusterRoleBinding("gardener.cloud:system:project-uam:", project, uam),
		projectRole("gardener.cloud:system:project-viewer:", project, "get"),
		clusterRoleBinding("gardener.cloud:system:project-viewer:", project, slices.Concat(viewers, managers)),
		roleBinding(namespace, MemberRole, admins),
		roleBinding(namespace, ViewerRole, viewers),
		roleBinding(namespace, ServiceAccountManagerRole, slices.Concat(owner, managers)),
	}
}

// subjects returns the members with one of the roles, each once.
func subjects(project *gardencorev1beta1.Project, roles ...string) []rbacv1.Subject {
	var result []rbacv1.Subject
	for _, member := range project.Spec.Members {
		has := slices.ContainsFunc(roles, func(role string) bool {
			return member.Role == role || slices.Contains(member.Roles, role)
		})
		if has && !slices.Contains(result, member.Subject) {
			result = append(result, member.Subject)
		}
	}
	return result
}

// projectRole allows verbs on the project itself.
func projectRole(prefix string, project *gardencorev1beta1.Project, verbs ...string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name: prefix + project.Name, Labels: map[string]string{gardencorev1beta1.ProjectName: project.Name},
		},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{gardencorev1beta1.GroupName}, Resources: []string{"projects"},
			ResourceNames: []string{project.Name}, Verbs: verbs,
		}},
	}
}

func clusterRoleBinding(prefix string, project *gardencorev1beta1.Project,
	members []rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	name := prefix + project.Name
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{gardencorev1beta1.ProjectName: project.Name},
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: members,
	}
}

func roleBinding(namespace, role string, members []rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   members,
	}
}

// apply creates a role or binding, or brings an existing one to the wanted content.
func apply(ctx context.Context, c client.Client, wanted client.Object) error {
	present := wanted.DeepCopyObject().(client.Object)
	err := c.Get(ctx, client.ObjectKeyFromObject(wanted), present)
	if apierrors.IsNotFound(err) {
		return c.Create(ctx, wanted)
	}
	if err != nil {
		return err
	}
	before := present.DeepCopyObject().(client.Object)
	mergeLabels(present, wanted.GetLabels())
	copyContent(present, wanted)
	if apiequality.Semantic.DeepEqual(before, present) {
		return nil
	}
	return c.Update(ctx, present)
}

func copyContent(to, from client.Object) {
	switch to := to.(type) {
	case *rbacv1.ClusterRole:
		wanted := from.(*rbacv1.ClusterRole)
		to.AggregationRule = wanted.AggregationRule
		if wanted.AggregationRule == nil { // else Kubernetes writes the rules
			to.Rules = wanted.Rules
		}
	case *rbacv1.ClusterRoleBinding:
		to.Subjects = from.(*rbacv1.ClusterRoleBinding).Subjects
	case *rbacv1.RoleBinding:
		to.Subjects = from.(*rbacv1.RoleBinding).Subjects
	}
}
