package v1beta1

// SetDefaultsSecretBinding takes the namespace of the binding for what names none.
func SetDefaultsSecretBinding(binding *SecretBinding) {
	if binding.SecretRef.Namespace == "" {
		binding.SecretRef.Namespace = binding.Namespace
	}
	for i := range binding.Quotas {
		if quota := &binding.Quotas[i]; quota.Namespace == "" {
			quota.Namespace = binding.Namespace
		}
	}
}
