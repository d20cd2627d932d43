package admission

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// binding is what SecretBindings and CredentialsBindings have in common.
type binding struct {
	kind        string
	object      metav1.Object
	credentials corev1.ObjectReference
	quotas      []corev1.ObjectReference
}

// isOf tells whether the binding is the one that a shoot of its namespace uses.
func (b binding) isOf(shoot *gardencorev1beta1.Shoot) bool {
	name := shoot.Spec.CredentialsBindingName
	if b.kind == kindSecretBinding {
		name = shoot.Spec.SecretBindingName
	}
	return shoot.Namespace == b.object.GetNamespace() && ptr.Deref(name, "") == b.object.GetName()
}

const (
	kindSecretBinding      = "secretbinding"
	kindCredentialsBinding = "credentialsbinding"
)

func ofSecretBinding(b *gardencorev1beta1.SecretBinding) binding {
	secret := corev1.ObjectReference{
		APIVersion: "v1", Kind: "Secret", Namespace: b.SecretRef.Namespace, Name: b.SecretRef.Name,
	}
	return binding{kindSecretBinding, b, secret, b.Quotas}
}

func ofCredentialsBinding(b *securityv1alpha1.CredentialsBinding) binding {
	return binding{kindCredentialsBinding, b, b.CredentialsRef, b.Quotas}
}

// bindingOf reads the binding that a shoot uses; nil when it uses none, or one that does not exist.
func bindingOf(ctx context.Context, reader Reader, shoot *gardencorev1beta1.Shoot) (*binding, error) {
	var found binding
	var err error
	switch {
	case ptr.Deref(shoot.Spec.CredentialsBindingName, "") != "":
		var b *securityv1alpha1.CredentialsBinding
		if b, err = get[*securityv1alpha1.CredentialsBinding](ctx, reader,
			securityv1alpha1.Resource("credentialsbindings"), shoot.Namespace,
			*shoot.Spec.CredentialsBindingName); err == nil {
			found = ofCredentialsBinding(b)
		}
	case ptr.Deref(shoot.Spec.SecretBindingName, "") != "":
		var b *gardencorev1beta1.SecretBinding
		if b, err = get[*gardencorev1beta1.SecretBinding](ctx, reader, gardencorev1beta1.Resource("secretbindings"),
			shoot.Namespace, *shoot.Spec.SecretBindingName); err == nil {
			found = ofSecretBinding(b)
		}
	default:
		return nil, nil
	}
	if isMissing(err) {
		return nil, nil
	}
	return &found, err
}

// bindings returns the bindings of a namespace, or of all.
func bindings(ctx context.Context, reader Reader, namespace string) ([]binding, error) {
	secretBindings, err := list[*gardencorev1beta1.SecretBinding](ctx, reader,
		gardencorev1beta1.Resource("secretbindings"), namespace, fields.Everything())
	if err != nil {
		return nil, err
	}
	credentialsBindings, err := list[*securityv1alpha1.CredentialsBinding](ctx, reader,
		securityv1alpha1.Resource("credentialsbindings"), namespace, fields.Everything())
	if err != nil {
		return nil, err
	}
	var found []binding
	for _, b := range secretBindings {
		found = append(found, ofSecretBinding(b))
	}
	for _, b := range credentialsBindings {
		found = append(found, ofCredentialsBinding(b))
	}
	return found, nil
}

func bindsQuota(b binding, quota metav1.Object) bool {
	return slices.ContainsFunc(b.quotas, func(to corev1.ObjectReference) bool {
		return to.Namespace == quota.GetNamespace() && to.Name == quota.GetName()
	})
}

func bindsIdentity(b binding, identity metav1.Object) bool {
	return b.credentials.Kind == "WorkloadIdentity" && b.credentials.Namespace == identity.GetNamespace() &&
		b.credentials.Name == identity.GetName()
}
