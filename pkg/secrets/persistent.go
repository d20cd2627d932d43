package secrets

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// originals are the keys of what cannot be made again: authorities and keys that others have got to know.
var originals = []string{
	DataKeyPrivateKeyCA, DataKeyRSAPrivateKey, DataKeyEncryptionKey, DataKeyWireGuardPrivateKey, DataKeyPassword,
	DataKeyStaticTokens,
}

// stateLabels are what a manager finds and judges its secrets by.
var stateLabels = []string{
	LabelManagedBy, LabelManagerIdentity, LabelName, LabelChecksum, LabelIssuedAt, LabelValidUntil,
	LabelRotationInitiation,
}

// IsPersistent tells whether a Secret must be kept when a control plane begins anew elsewhere: it is gardenlet's, and
// nothing that is there would lead to it again. Certificates, kubeconfigs and bundles follow from these.
func IsPersistent(secret *corev1.Secret) bool {
	return isOf(secret.Labels) && slices.ContainsFunc(originals, func(key string) bool {
		return len(secret.Data[key]) > 0
	})
}

// Restored is the Secret of a namespace that was kept with a name, labels and data; nil unless it could be one of
// gardenlet's there. Only the labels that a manager goes by are taken over: who kept it is not trusted with others.
func Restored(namespace, name string, labels map[string]string, data map[string][]byte) *corev1.Secret {
	secret := &corev1.Secret{Type: corev1.SecretTypeOpaque, Immutable: new(true), Data: maps.Clone(data)}
	secret.Namespace, secret.Name, secret.Labels = namespace, name, map[string]string{}
	for _, key := range stateLabels {
		if value, found := labels[key]; found {
			secret.Labels[key] = value
		}
	}
	if !IsPersistent(secret) || !isNameOf(secret) {
		return nil
	}
	return secret
}

func isOf(labels map[string]string) bool {
	return labels[LabelManagedBy] == LabelManagedByValue && labels[LabelManagerIdentity] == defaultIdentity &&
		labels[LabelName] != "" && labels[LabelBundleFor] == ""
}

// isNameOf tells whether a manager would give this name: that of its configuration, and the checksum.
func isNameOf(secret *corev1.Secret) bool {
	begin := secret.Labels[LabelName] + "-" + secret.Labels[LabelChecksum]
	return secret.Labels[LabelChecksum] != "" && (secret.Name == begin || len(secret.Name) > len(begin) &&
		secret.Name[:len(begin)+1] == begin+"-")
}
