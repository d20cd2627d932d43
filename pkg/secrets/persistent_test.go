package secrets

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A control plane that begins elsewhere with what is persistent makes no authority and no key anew, and names all that
// it makes as before.
func TestBeginningElsewhere(t *testing.T) {
	configs := []Config{
		CertificateConfig{Name: "ca", CertType: CACert},
		CertificateConfig{Name: "server", CertType: ServerCert, SigningCA: "ca"},
		KubeconfigConfig{Name: "admin", Server: "https://x", User: "admin", SigningCA: "ca"},
		KeyConfig{Name: "service-account-key"},
		StaticTokenConfig{Name: "static-token", User: "u"},
		EncryptionKeyConfig{Name: "encryption-key"},
		WireGuardKeyPairConfig{Name: "wireguard"},
		RandomConfig{Name: "password"},
		DataConfig{Name: "config", Data: map[string][]byte{"config.yaml": []byte("a: b")}},
	}
	before := generated(t, fake.NewClientBuilder().Build(), configs)
	elsewhere := fake.NewClientBuilder().Build()
	for _, secret := range before {
		restored := Restored(namespace, secret.Name, secret.Labels, secret.Data)
		if (restored != nil) != IsPersistent(secret) {
			t.Errorf("%s: persistent %v, restored %v", secret.Name, IsPersistent(secret), restored)
		}
		if restored != nil {
			if err := elsewhere.Create(t.Context(), restored); err != nil {
				t.Fatal(err)
			}
		}
	}
	originals := []string{"ca", "service-account-key", "static-token", "encryption-key", "wireguard", "password"}
	for name, secret := range generated(t, elsewhere, configs) {
		same := maps.EqualFunc(secret.Data, before[name].Data, func(a, b []byte) bool { return string(a) == string(b) })
		if secret.Name != before[name].Name {
			t.Errorf("%s is called %s, and was %s", name, secret.Name, before[name].Name)
		}
		if slices.Contains(originals, name) && !same {
			t.Errorf("%s was made anew", name)
		}
	}
}

// generated are the secrets of the configurations by their names, and the bundles that come with them.
func generated(t *testing.T, c client.Client, configs []Config) map[string]*corev1.Secret {
	t.Helper()
	m, err := New(t.Context(), c, namespace, Options{})
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]*corev1.Secret{}
	for _, config := range configs {
		if made[config.SecretName()], err = m.Generate(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"ca", "service-account-key"} {
		bundle, found := m.Get(name, Bundle)
		if !found {
			t.Fatalf("%s has no bundle", name)
		}
		made[name+"-bundle"] = bundle
	}
	return made
}

// Whoever kept the secrets gives back none that others would take for something else.
func TestAttackRestoredSecrets(t *testing.T) {
	labels := func(change func(map[string]string)) map[string]string {
		all := map[string]string{
			LabelManagedBy: LabelManagedByValue, LabelManagerIdentity: "gardenlet", LabelName: "ca",
			LabelChecksum: "12345678", LabelIssuedAt: "1",
		}
		change(all)
		return all
	}
	key := map[string][]byte{DataKeyPrivateKeyCA: []byte("k")}
	plain := func(map[string]string) {}
	if restored := Restored("n", "ca-12345678-abcde", labels(plain), key); restored == nil {
		t.Fatal("a secret of a rotation is not restored")
	}
	marked := Restored("n", "ca-12345678", labels(func(l map[string]string) {
		l["resources.gardener.cloud/purpose"] = "token-requestor"
	}), key)
	if marked == nil || len(marked.Labels) != 5 || marked.Namespace != "n" || marked.Type != corev1.SecretTypeOpaque {
		t.Errorf("restored is %+v", marked)
	}
	without := func(label string) map[string]string {
		return labels(func(l map[string]string) { delete(l, label) })
	}
	other := labels(func(l map[string]string) { l[LabelManagerIdentity] = "x" })
	kubeconfig := map[string][]byte{DataKeyKubeconfig: []byte("k")}
	for what, restored := range map[string]*corev1.Secret{
		"another's name":     Restored("n", "cloudprovider", labels(plain), key),
		"a longer checksum":  Restored("n", "ca-123456789", labels(plain), key),
		"another manager's":  Restored("n", "ca-12345678", without(LabelManagedBy), key),
		"another identity's": Restored("n", "ca-12345678", other, key),
		"no checksum":        Restored("n", "ca-", without(LabelChecksum), key),
		"a kubeconfig":       Restored("n", "ca-12345678", labels(plain), kubeconfig),
	} {
		if restored != nil {
			t.Errorf("%s is restored as %s", what, restored.Name)
		}
	}
}
