package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

func secretBindings() Served {
	return &Kind[*gardencorev1beta1.SecretBinding]{
		Version: gardencorev1beta1.SchemeGroupVersion, Plural: "secretbindings", Singular: "secretbinding",
		Namespaced: true,
		ShortNames: []string{"sb"},
		New:        func() *gardencorev1beta1.SecretBinding { return &gardencorev1beta1.SecretBinding{} },
		NewList:    func() runtime.Object { return &gardencorev1beta1.SecretBindingList{} },
		Columns: []Column[*gardencorev1beta1.SecretBinding]{
			{Name: "Secret", Description: "The secret with the credentials.",
				Cell: func(b *gardencorev1beta1.SecretBinding) any {
					return b.SecretRef.Namespace + "/" + b.SecretRef.Name
				}},
			{Name: "Provider", Description: "The provider that the credentials are for.",
				Cell: func(b *gardencorev1beta1.SecretBinding) any {
					if b.Provider == nil {
						return none
					}
					return b.Provider.Type
				}},
		},
		PrepareForCreate: func(_ context.Context, b *gardencorev1beta1.SecretBinding) {
			gardencorev1beta1.SetDefaultsSecretBinding(b)
		},
		PrepareForUpdate: func(_ context.Context, b, _ *gardencorev1beta1.SecretBinding) {
			gardencorev1beta1.SetDefaultsSecretBinding(b)
		},
		Validate:       gardencorev1beta1.ValidateSecretBinding,
		ValidateUpdate: gardencorev1beta1.ValidateSecretBindingUpdate,
		Warnings:       gardencorev1beta1.SecretBindingWarnings,
	}
}

func credentialsBindings() Served {
	return &Kind[*securityv1alpha1.CredentialsBinding]{
		Version: securityv1alpha1.SchemeGroupVersion, Plural: "credentialsbindings", Singular: "credentialsbinding",
		Namespaced: true,
		ShortNames: []string{"cb"},
		New:        func() *securityv1alpha1.CredentialsBinding { return &securityv1alpha1.CredentialsBinding{} },
		NewList:    func() runtime.Object { return &securityv1alpha1.CredentialsBindingList{} },
		Columns: []Column[*securityv1alpha1.CredentialsBinding]{
			{
				Name: "Provider", Description: "The provider that the credentials are for.",
				Cell: func(b *securityv1alpha1.CredentialsBinding) any { return b.Provider.Type },
			},
			{
				Name: "APIVersion", Description: "The API version of the credentials.",
				Cell: func(b *securityv1alpha1.CredentialsBinding) any { return b.CredentialsRef.APIVersion },
			},
			{
				Name: "Kind", Description: "The kind of the credentials.",
				Cell: func(b *securityv1alpha1.CredentialsBinding) any { return b.CredentialsRef.Kind },
			},
			{Name: "Credentials", Description: "The credentials.",
				Cell: func(b *securityv1alpha1.CredentialsBinding) any {
					return b.CredentialsRef.Namespace + "/" + b.CredentialsRef.Name
				}},
		},
		PrepareForCreate: func(_ context.Context, b *securityv1alpha1.CredentialsBinding) {
			securityv1alpha1.SetDefaultsCredentialsBinding(b)
		},
		PrepareForUpdate: func(_ context.Context, b, _ *securityv1alpha1.CredentialsBinding) {
			securityv1alpha1.SetDefaultsCredentialsBinding(b)
		},
		Validate:       securityv1alpha1.ValidateCredentialsBinding,
		ValidateUpdate: securityv1alpha1.ValidateCredentialsBindingUpdate,
	}
}
