package v1alpha1

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func aBinding() *CredentialsBinding {
	return &CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "local", ResourceVersion: "1"},
		Provider:   CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Secret", Namespace: "garden-demo", Name: "local",
		},
	}
}

func TestValidateCredentialsBinding(t *testing.T) {
	for name, test := range map[string]struct {
		change         func(*CredentialsBinding)
		field, message string
	}{
		"as it is":    {func(*CredentialsBinding) {}, "", ""},
		"no provider": {func(b *CredentialsBinding) { b.Provider.Type = "" }, "provider.type", "credentials are for"},
		"two providers": {
			func(b *CredentialsBinding) { b.Provider.Type = "aws,gcp" }, "provider.type", "a binding for each",
		},
		"workload identity": {func(b *CredentialsBinding) {
			b.CredentialsRef.APIVersion, b.CredentialsRef.Kind = "security.gardener.cloud/v1alpha1", "WorkloadIdentity"
		}, "", ""},
		"other kind": {
			func(b *CredentialsBinding) { b.CredentialsRef.Kind = "ConfigMap" }, "credentialsRef", "v1/Secret",
		},
		"no name": {
			func(b *CredentialsBinding) { b.CredentialsRef.Name = "" }, "credentialsRef.name", "name the object",
		},
		"no namespace": {
			func(b *CredentialsBinding) { b.CredentialsRef.Namespace = "" }, "credentialsRef.namespace", "namespace",
		},
		"quota without name": {
			func(b *CredentialsBinding) { b.Quotas = []corev1.ObjectReference{{}} }, "quotas[0].name", "Quota",
		},
		"outside a namespace": {func(b *CredentialsBinding) { b.Namespace = "" }, "metadata.namespace", "Required"},
	} {
		t.Run(name, func(t *testing.T) {
			binding := aBinding()
			test.change(binding)
			expectError(t, ValidateCredentialsBinding(binding), test.field, test.message)
		})
	}
}

func TestBindingsReferToTheirOwnNamespace(t *testing.T) {
	binding := aBinding()
	binding.CredentialsRef.Namespace = ""
	binding.Quotas = []corev1.ObjectReference{{Name: "a"}, {Namespace: "other", Name: "b"}}
	SetDefaultsCredentialsBinding(binding)
	if binding.CredentialsRef.Namespace != "garden-demo" || binding.Quotas[0].Namespace != "garden-demo" ||
		binding.Quotas[1].Namespace != "other" {
		t.Errorf("binding = %+v", binding)
	}
}

func TestValidateCredentialsBindingUpdate(t *testing.T) {
	for path, change := range map[string]func(*CredentialsBinding){
		"provider":       func(b *CredentialsBinding) { b.Provider.Type = "aws" },
		"credentialsRef": func(b *CredentialsBinding) { b.CredentialsRef.Name = "other" },
		"quotas":         func(b *CredentialsBinding) { b.Quotas = []corev1.ObjectReference{{Name: "small"}} },
	} {
		binding := aBinding()
		change(binding)
		expectError(t, ValidateCredentialsBindingUpdate(binding, aBinding()), path, "cannot be changed")
	}
}

func TestValidateWorkloadIdentity(t *testing.T) {
	object := func() *WorkloadIdentity {
		return &WorkloadIdentity{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "aws", ResourceVersion: "1"},
			Spec: WorkloadIdentitySpec{
				Audiences: []string{"sts.amazonaws.com"}, TargetSystem: TargetSystem{Type: "aws"},
			},
			Status: WorkloadIdentityStatus{Sub: WorkloadIdentitySubjectPrefix + "garden-demo:aws:1"},
		}
	}
	expectError(t, ValidateWorkloadIdentity(object()), "", "")

	twice := object()
	twice.Spec.Audiences = append(twice.Spec.Audiences, twice.Spec.Audiences[0])
	expectError(t, ValidateWorkloadIdentity(twice), "spec.audiences[1]", "Duplicate")

	other := object()
	other.Status.Sub += "2"
	expectError(t, ValidateWorkloadIdentityUpdate(other, object()), "status.sub", "cannot be changed")
}

func expectError(t *testing.T, errs field.ErrorList, path, message string) {
	t.Helper()
	switch {
	case path == "" && len(errs) > 0:
		t.Errorf("is refused: %v", errs.ToAggregate())
	case path != "" && (len(errs) != 1 || errs[0].Field != path || !strings.Contains(errs[0].Error(), message)):
		t.Errorf("want %s: …%s…, got %v", path, message, errs)
	}
}
