package extensionrights

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trellis-garden/trellis/pkg/component"
)

// credentialsRole is the name of the Role for one Secret, and of its binding.
func credentialsRole(ref corev1.SecretReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ref.Namespace, Name: "extensions.trellis.garden:" + ref.Name}
}

// BindSecret lets those who serve a kind and type read one Secret: that of an object which lies in no namespace.
func BindSecret(ctx context.Context, seed client.Client, pair string, ref corev1.SecretReference) error {
	all, err := roles(ctx, seed)
	if err != nil {
		return err
	}
	var subjects []rbacv1.Subject
	for _, r := range serving(all, sets.New(pair)) {
		if !slices.Contains(subjects, r.subject()) {
			subjects = append(subjects, r.subject())
		}
	}
	role := &rbacv1.Role{ObjectMeta: credentialsRole(ref)}
	if _, err := controllerutil.CreateOrPatch(ctx, seed, role, func() error {
		role.Rules = []rbacv1.PolicyRule{
			{
				APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{ref.Name},
				Verbs: []string{"get"},
			},
		}
		return nil
	}); err != nil {
		return fmt.Errorf("Role %s: %w", client.ObjectKeyFromObject(role), err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: credentialsRole(ref)}
	if _, err := controllerutil.CreateOrPatch(ctx, seed, binding, func() error {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}
		binding.Subjects = subjects
		return nil
	}); err != nil {
		return fmt.Errorf("RoleBinding %s: %w", client.ObjectKeyFromObject(binding), err)
	}
	return nil
}

// ReleaseSecret takes that right back.
func ReleaseSecret(ctx context.Context, seed client.Client, ref corev1.SecretReference) error {
	return component.Delete(ctx, seed, &rbacv1.RoleBinding{ObjectMeta: credentialsRole(ref)},
		&rbacv1.Role{ObjectMeta: credentialsRole(ref)})
}
