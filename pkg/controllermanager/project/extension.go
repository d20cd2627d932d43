package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	// roleExtensionProject is the role of the cluster roles and bindings below.
	roleExtensionProject = "extension-project-role"
	// aggregateToExtensionRole, on a cluster role of an extension, adds its rules to all roles of that name.
	aggregateToExtensionRole = "rbac.gardener.cloud/aggregate-to-extension-role"
)

// extensionRolePrefix begins the names of roles that extensions define for a project.
func extensionRolePrefix(project *gardencorev1beta1.Project) string {
	return "gardener.cloud:extension:project:" + project.Name + ":"
}

func extensionLabels(project *gardencorev1beta1.Project) map[string]string {
	return map[string]string{
		gardencorev1beta1.GardenRole: roleExtensionProject, gardencorev1beta1.ProjectName: project.Name,
	}
}

// extensionRoles returns the names of the extensions' roles that members of a project have.
func extensionRoles(project *gardencorev1beta1.Project) []string {
	names := sets.New[string]()
	for _, member := range project.Spec.Members {
		for _, role := range append([]string{member.Role}, member.Roles...) {
			if name, ok := strings.CutPrefix(role, gardencorev1beta1.ProjectMemberExtensionPrefix); ok && name != "" {
				names.Insert(name)
			}
		}
	}
	return sets.List(names)
}

// ExtensionAccess returns the roles and bindings for the roles that extensions define. A role is empty by itself:
// Kubernetes fills it with the rules of all cluster roles that an extension labels for it.
func ExtensionAccess(project *gardencorev1beta1.Project) []client.Object {
	var objects []client.Object
	for _, role := range extensionRoles(project) {
		name := extensionRolePrefix(project) + role
		objects = append(objects,
			&rbacv1.ClusterRole{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: extensionLabels(project)},
				AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
					{MatchLabels: map[string]string{aggregateToExtensionRole: role}},
				}},
			},
			&rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: NamespaceOf(project), Name: name, Labels: extensionLabels(project),
				},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
				Subjects: subjects(project, gardencorev1beta1.ProjectMemberExtensionPrefix+role),
			},
		)
	}
	return objects
}

// pruneExtensionAccess deletes the roles and bindings of extensions' roles that are not kept.
func pruneExtensionAccess(ctx context.Context, c client.Client, project *gardencorev1beta1.Project,
	kept []string) error {
	roles, bindings := &rbacv1.ClusterRoleList{}, &rbacv1.RoleBindingList{}
	labels := client.MatchingLabels(extensionLabels(project))
	if err := c.List(ctx, roles, labels); err != nil {
		return fmt.Errorf("listing cluster roles: %w", err)
	}
	if err := c.List(ctx, bindings, labels, client.InNamespace(NamespaceOf(project))); err != nil {
		return fmt.Errorf("listing role bindings: %w", err)
	}
	var errs []error
	prune := func(object client.Object) {
		if name, _ := strings.CutPrefix(object.GetName(), extensionRolePrefix(project)); !slices.Contains(kept, name) {
			errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, object)))
		}
	}
	for i := range bindings.Items {
		prune(&bindings.Items[i])
	}
	for i := range roles.Items {
		prune(&roles.Items[i])
	}
	return errors.Join(errs...)
}
