package landscape

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/encryption"
)

func TestRotationIsRemembered(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	if record, err := loadRotation(t.Context(), c); err != nil || record != (encryption.Record{}) {
		t.Fatalf("before the first rotation: %+v, %v", record, err)
	}
	for _, stage := range []encryption.Stage{encryption.Preparing, encryption.Rewriting} {
		want := encryption.Record{Initiated: time.Unix(1_800_000_000, 0), Stage: stage}
		if err := saveRotation(t.Context(), c, want); err != nil {
			t.Fatal(err)
		}
		if got, err := loadRotation(t.Context(), c); err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
}

func TestRotationIsNotGuessed(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: gardenNS, Name: rotationConfigMap},
		Data:       map[string]string{"initiated": "yesterday"},
	}).Build()
	if _, err := loadRotation(t.Context(), c); err == nil || !strings.Contains(err.Error(), "data.initiated") {
		t.Errorf("error = %v, want one that names data.initiated", err)
	}
}

func TestGardenEncryption(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	write := func(record encryption.Record) (checksum, config string) {
		manager, err := gardenManager(t.Context(), c, record)
		if err != nil {
			t.Fatal(err)
		}
		if checksum, err = writeGardenEncryption(t.Context(), c, manager, record.Stage); err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: gardenNS, Name: gardenEncryptionSecret},
			secret); err != nil {
			t.Fatal(err)
		}
		return checksum, string(secret.Data["encryption.yaml"])
	}
	first, config := write(encryption.Record{})
	for _, part := range []string{
		"internalsecrets.core.gardener.cloud", "shootstates.core.gardener.cloud", "secretbox",
	} {
		if !strings.Contains(config, part) {
			t.Errorf("%s is missing in %s", part, config)
		}
	}
	if again, _ := write(encryption.Record{}); again != first {
		t.Error("the same keys gave another checksum: that would restart the server for nothing")
	}
	if rotated, _ := write(encryption.Record{
		Initiated: time.Now().Add(-time.Minute), Stage: encryption.Preparing,
	}); rotated == first {
		t.Error("new keys gave the same checksum: the server would not learn of them")
	}
}
