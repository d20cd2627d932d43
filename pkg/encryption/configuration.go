// Package encryption keeps what API servers store unreadable to whoever has their database, or a backup of it, but not the
// keys: the configuration that kube-apiserver and garden-apiserver read, and the rotation of the keys in steps that lose
// nothing. What is encrypted, and how servers are rolled out, is said by its users.
package encryption

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"

	"github.com/trellis-garden/trellis/pkg/secrets"
)

// Provider is how objects are encrypted.
type Provider string

// The encryption providers.
const (
	// Secretbox is XSalsa20-Poly1305, the default.
	Secretbox Provider = "secretbox"
	// AESCBC is AES in CBC mode.
	AESCBC Provider = "aescbc"
	// AESGCM is AES in GCM mode. A key must not encrypt more than 2^32 times, so it has to be rotated.
	AESGCM Provider = "aesgcm"
)

// Keys are the keys of one kind of server, as Secrets of the secrets manager.
type Keys struct {
	// Current is the newest key.
	Current *corev1.Secret
	// Old is the key of before a rotation that is under way; nil otherwise.
	Old *corev1.Secret
}

// GenerateKeys makes the keys of a configuration name, or finds them. The manager has to know when that name was last
// rotated; see Record.Initiations.
func GenerateKeys(ctx context.Context, manager secrets.Manager, name string, stage Stage) (Keys, error) {
	config := secrets.EncryptionKeyConfig{Name: name}
	if stage.dropsOld() {
		key, err := manager.Generate(ctx, config)
		return Keys{Current: key}, err
	}
	key, err := manager.Generate(ctx, config, secrets.KeepOld())
	if err != nil {
		return Keys{}, err
	}
	old, _ := manager.Get(name, secrets.Old)
	return Keys{Current: key, Old: old}, nil
}

// Configuration is what --encryption-provider-config reads. Objects of the resources, in the form "secrets" or
// "things.example.com", are written with the key that the stage of the rotation says, and read with all of them; what was
// stored before encryption was turned on is read too.
func Configuration(provider Provider, resources []string, stage Stage, keys Keys) *apiserverv1.EncryptionConfiguration {
	return &apiserverv1.EncryptionConfiguration{
		TypeMeta:  metav1.TypeMeta{APIVersion: "apiserver.config.k8s.io/v1", Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{Resources: resources, Providers: providers(provider, stage, keys)}},
	}
}

// providers are in the order of reading; the first one writes.
func providers(provider Provider, stage Stage, keys Keys) []apiserverv1.ProviderConfiguration {
	plain := apiserverv1.ProviderConfiguration{Identity: &apiserverv1.IdentityConfiguration{}}
	switch {
	case stage != Preparing:
		return []apiserverv1.ProviderConfiguration{withKeys(provider, keys.Current, keys.Old), plain}
	case keys.Old != nil:
		return []apiserverv1.ProviderConfiguration{withKeys(provider, keys.Old, keys.Current), plain}
	default: // Servers that run already know no key at all.
		return []apiserverv1.ProviderConfiguration{plain, withKeys(provider, keys.Current)}
	}
}

func withKeys(provider Provider, keys ...*corev1.Secret) apiserverv1.ProviderConfiguration {
	var list []apiserverv1.Key
	for _, key := range keys {
		if key != nil {
			list = append(list, apiserverv1.Key{
				Name: string(key.Data[secrets.DataKeyEncryptionKeyName]), Secret: string(key.Data[secrets.DataKeyEncryptionKey]),
			})
		}
	}
	switch provider {
	case AESCBC:
		return apiserverv1.ProviderConfiguration{AESCBC: &apiserverv1.AESConfiguration{Keys: list}}
	case AESGCM:
		return apiserverv1.ProviderConfiguration{AESGCM: &apiserverv1.AESConfiguration{Keys: list}}
	default:
		return apiserverv1.ProviderConfiguration{Secretbox: &apiserverv1.SecretboxConfiguration{Keys: list}}
	}
}
