// Package encryption keeps what API servers store unreadable to whoever has their database, or a backup of it, but not
// the keys: the configuration that kube-apiserver and garden-apiserver read, and the rotation of the keys in steps that
// lose nothing. What is encrypted, and how servers are rolled out, is said by its users.
package encryption

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
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

// IsKnown tells whether it is one of these.
func (p Provider) IsKnown() bool { return slices.Contains([]Provider{Secretbox, AESCBC, AESGCM}, p) }

// Scheme says how objects of which resources are encrypted.
type Scheme struct {
	// Provider encrypts.
	Provider Provider
	// Resources in the form "secrets" or "things.example.com".
	Resources []string
}

// Equal tells whether both encrypt the same resources in the same way, in whatever order they are named.
func (s Scheme) Equal(other Scheme) bool {
	return s.Provider == other.Provider && sets.New(s.Resources...).Equal(sets.New(other.Resources...))
}

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

// Configuration is what --encryption-provider-config reads. In the steps from one scheme to another, and from one key
// to another, objects are written as the stage says, and read as either may have written them; what was stored before
// encryption was turned on is read too. Without a change both schemes are the same.
func Configuration(from, to Scheme, stage Stage, keys Keys) *apiserverv1.EncryptionConfiguration {
	switch {
	case stage == "" || stage.dropsOld():
		from = to
	case stage == Preparing && keys.Old == nil && from.Equal(to):
		from.Provider = "" // Neither key nor scheme is another: servers that run already know no key at all.
	}
	config := &apiserverv1.EncryptionConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiserver.config.k8s.io/v1", Kind: "EncryptionConfiguration"},
	}
	before, after := sets.New(from.Resources...), sets.New(to.Resources...)
	for _, group := range []struct {
		resources []string
		from, to  Provider
	}{
		{
			slices.DeleteFunc(slices.Clone(to.Resources), func(r string) bool { return !before.Has(r) }), from.Provider,
			to.Provider,
		},
		{slices.DeleteFunc(slices.Clone(to.Resources), before.Has), "", to.Provider},
		{slices.DeleteFunc(slices.Clone(from.Resources), after.Has), from.Provider, ""},
	} {
		if len(group.resources) > 0 {
			config.Resources = append(config.Resources, apiserverv1.ResourceConfiguration{
				Resources: group.resources, Providers: providers(group.from, group.to, stage, keys),
			})
		}
	}
	return config
}

// providers are in the order of reading; the first one writes. An empty provider does not encrypt.
func providers(from, to Provider, stage Stage, keys Keys) []apiserverv1.ProviderConfiguration {
	order, ordered := []Provider{to, from, ""}, []*corev1.Secret{keys.Current, keys.Old}
	if stage == Preparing {
		order, ordered = []Provider{from, to, ""}, []*corev1.Secret{keys.Old, keys.Current}
	}
	var list []apiserverv1.ProviderConfiguration
	for i, provider := range order {
		if !slices.Contains(order[:i], provider) {
			list = append(list, withKeys(provider, ordered))
		}
	}
	return list
}

func withKeys(provider Provider, keys []*corev1.Secret) apiserverv1.ProviderConfiguration {
	var list []apiserverv1.Key
	for _, key := range keys {
		if key != nil {
			list = append(list, apiserverv1.Key{
				Name:   string(key.Data[secrets.DataKeyEncryptionKeyName]),
				Secret: string(key.Data[secrets.DataKeyEncryptionKey]),
			})
		}
	}
	switch provider {
	case "":
		return apiserverv1.ProviderConfiguration{Identity: &apiserverv1.IdentityConfiguration{}}
	case AESCBC:
		return apiserverv1.ProviderConfiguration{AESCBC: &apiserverv1.AESConfiguration{Keys: list}}
	case AESGCM:
		return apiserverv1.ProviderConfiguration{AESGCM: &apiserverv1.AESConfiguration{Keys: list}}
	default:
		return apiserverv1.ProviderConfiguration{Secretbox: &apiserverv1.SecretboxConfiguration{Keys: list}}
	}
}
