package backupsecret

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// seed is one with a shoot.
func seed(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, extensionsv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(&gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{UID: "uid"}})
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(&extensionsv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "shoot--demo--one"},
		Spec:       extensionsv1alpha1.ClusterSpec{Shoot: runtime.RawExtension{Raw: raw}},
	}).Build()
}

func entry(name string) *extensionsv1alpha1.BackupEntry {
	return &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestNamespace(t *testing.T) {
	for name, want := range map[string]string{
		"shoot--demo--one--uid": "shoot--demo--one", "shoot--demo--one--earlier": "", "shoot--demo--gone--uid": "",
		"nothing": "",
	} {
		if got, err := Namespace(t.Context(), seed(t), entry(name)); got != want || err != nil {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestWrite(t *testing.T) {
	c := seed(t)
	for _, key := range []string{"old", "new"} {
		data := map[string][]byte{key: []byte("x")}
		if err := Write(t.Context(), c, "shoot--demo--one", entry("shoot--demo--one--uid"), "there", data); err != nil {
			t.Fatal(err)
		}
	}
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shoot--demo--one", Name: "etcd-backup"},
		secret); err != nil {
		t.Fatal(err)
	}
	if len(secret.Data) != 2 || string(secret.Data["bucketName"]) != "there" || string(secret.Data["new"]) != "x" ||
		secret.Annotations["backup.gardener.cloud/created-by"] != "shoot--demo--one--uid" {
		t.Errorf("written is %v, %v", secret.Data, secret.Annotations)
	}
}
