package extensionrights

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
)

// labelCredentials marks the bindings of credentials, so that Sync finds them. The annotation of resources has
// whom they are for, as Pair.
const labelCredentials = "extensions.trellis.garden/credentials"

// credentialsRole is the name of the Role for one Secret, and of its binding.
func credentialsRole(ref corev1.SecretReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ref.Namespace, Name: "extensions.trellis.garden:" + ref.Name}
}

// BindSecret lets those who serve a kind and type read one Secret: that of an object which lies in no namespace. Those
// who come to serve it later are given the right by Sync.
func BindSecret(ctx context.Context, seed client.Client, pair string, ref corev1.SecretReference) error {
	all, err := roles(ctx, seed)
	if err != nil {
		return err
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
		metav1.SetMetaDataLabel(&binding.ObjectMeta, labelCredentials, "true")
		metav1.SetMetaDataAnnotation(&binding.ObjectMeta, resourcesAnnotation, pair)
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}
		binding.Subjects = subjectsServing(all, pair)
		return nil
	}); err != nil {
		return fmt.Errorf("RoleBinding %s: %w", client.ObjectKeyFromObject(binding), err)
	}
	return nil
}

// subjectsServing are who serve a kind and type, each once.
func subjectsServing(all []role, pair string) []rbacv1.Subject {
	var subjects []rbacv1.Subject
	for _, r := range serving(all, sets.New(pair)) {
		if !slices.Contains(subjects, r.subject()) {
			subjects = append(subjects, r.subject())
		}
	}
	return subjects
}

// syncSecrets has the Secrets that were bound be read by those who serve their kinds and types now.
func syncSecrets(ctx context.Context, seed client.Client) error {
	list := &rbacv1.RoleBindingList{}
	if err := seed.List(ctx, list, client.InNamespace(gardencorev1beta1.GardenNamespace),
		client.HasLabels{labelCredentials}); err != nil {
		return fmt.Errorf("listing who may read credentials: %w", err)
	}
	all, err := roles(ctx, seed)
	if err != nil {
		return err
	}
	for i := range list.Items {
		binding := &list.Items[i]
		subjects := subjectsServing(all, binding.Annotations[resourcesAnnotation])
		if apiequality.Semantic.DeepEqual(binding.Subjects, subjects) {
			continue
		}
		patch := client.MergeFrom(binding.DeepCopy())
		binding.Subjects = subjects
		if err := seed.Patch(ctx, binding, patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("RoleBinding %s: %w", client.ObjectKeyFromObject(binding), err)
		}
	}
	return nil
}

// ReleaseSecret takes that right back.
func ReleaseSecret(ctx context.Context, seed client.Client, ref corev1.SecretReference) error {
	return component.Delete(ctx, seed, &rbacv1.RoleBinding{ObjectMeta: credentialsRole(ref)},
		&rbacv1.Role{ObjectMeta: credentialsRole(ref)})
}
