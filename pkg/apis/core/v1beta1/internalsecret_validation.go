package v1beta1

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateInternalSecret checks an InternalSecret on its own, as a Secret is checked.
func ValidateInternalSecret(secret *InternalSecret) field.ErrorList {
	errs := validateMeta(&secret.ObjectMeta, true, apivalidation.NameIsDNSSubdomain)
	path := field.NewPath("data")
	size := 0
	for _, key := range sortedKeys(secret.Data) {
		for _, message := range validation.IsConfigMapKey(key) {
			errs = append(errs, field.Invalid(path.Key(key), key, message))
		}
		size += len(secret.Data[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.Invalid(path, fmt.Sprintf("%d bytes", size),
			fmt.Sprintf("must have at most %d bytes", corev1.MaxSecretSize)))
	}
	return append(errs, validateSecretType(secret, path)...)
}

// secretKeys are the keys that Secrets of a type must have.
var secretKeys = map[corev1.SecretType][]string{
	corev1.SecretTypeTLS:              {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
	corev1.SecretTypeSSHAuth:          {corev1.SSHAuthPrivateKey},
	corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey},
	corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
}

// validateSecretType holds a Secret to what its type promises.
func validateSecretType(secret *InternalSecret, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range secretKeys[secret.Type] {
		if _, ok := secret.Data[key]; !ok {
			errs = append(errs, field.Required(path.Key(key), fmt.Sprintf("type %s has this key", secret.Type)))
		}
	}
	_, user := secret.Data[corev1.BasicAuthUsernameKey]
	_, password := secret.Data[corev1.BasicAuthPasswordKey]
	if secret.Type == corev1.SecretTypeBasicAuth && !user && !password {
		errs = append(errs, field.Required(path.Key(corev1.BasicAuthUsernameKey),
			fmt.Sprintf("type %s has this key, or %s", secret.Type, corev1.BasicAuthPasswordKey)))
	}
	return errs
}

// ValidateInternalSecretUpdate checks a change of an InternalSecret.
func ValidateInternalSecretUpdate(secret, old *InternalSecret) field.ErrorList {
	errs := validateMetaUpdate(&secret.ObjectMeta, &old.ObjectMeta)
	errs = append(errs, validateImmutable(string(secret.Type), string(old.Type), field.NewPath("type"))...)
	if deref(old.Immutable) {
		if !deref(secret.Immutable) {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"),
				"cannot be unset; create another InternalSecret instead"))
		}
		if len(validateImmutable(secret.Data, old.Data, nil)) > 0 {
			errs = append(errs, field.Forbidden(field.NewPath("data"), "cannot be changed because immutable is set"))
		}
	}
	return append(errs, ValidateInternalSecret(secret)...)
}
