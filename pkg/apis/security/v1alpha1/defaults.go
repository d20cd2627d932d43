package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// RegisterDefaults makes a scheme set defaults in the kinds of this package whenever it decodes them.
func RegisterDefaults(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&CredentialsBinding{},
		func(obj any) { SetDefaultsCredentialsBinding(obj.(*CredentialsBinding)) })
	scheme.AddTypeDefaultingFunc(&CredentialsBindingList{}, func(obj any) {
		list := obj.(*CredentialsBindingList)
		for i := range list.Items {
			SetDefaultsCredentialsBinding(&list.Items[i])
		}
	})
	return nil
}

// SetDefaultsCredentialsBinding takes the namespace of the binding for what names none.
func SetDefaultsCredentialsBinding(binding *CredentialsBinding) {
	if binding.CredentialsRef.Namespace == "" {
		binding.CredentialsRef.Namespace = binding.Namespace
	}
	for i := range binding.Quotas {
		if quota := &binding.Quotas[i]; quota.Namespace == "" {
			quota.Namespace = binding.Namespace
		}
	}
}
