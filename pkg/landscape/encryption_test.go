package landscape

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
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
		ObjectMeta: metav1.ObjectMeta{Namespace: gardenNS, Name: rotationConfigMap}, Data: map[string]string{"initiated": "yesterday"},
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
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: gardenNS, Name: gardenEncryptionSecret}, secret); err != nil {
			t.Fatal(err)
		}
		return checksum, string(secret.Data["encryption.yaml"])
	}
	first, config := write(encryption.Record{})
	for _, part := range []string{"internalsecrets.core.gardener.cloud", "shootstates.core.gardener.cloud", "secretbox"} {
		if !strings.Contains(config, part) {
			t.Errorf("%s is missing in %s", part, config)
		}
	}
	if again, _ := write(encryption.Record{}); again != first {
		t.Error("the same keys gave another checksum: that would restart the server for nothing")
	}
	if rotated, _ := write(encryption.Record{Initiated: time.Now().Add(-time.Minute), Stage: encryption.Preparing}); rotated == first {
		t.Error("new keys gave the same checksum: the server would not learn of them")
	}
}

func TestRolloutIsAwaited(t *testing.T) {
	labels, now := map[string]string{"role": "apiserver"}, metav1.Now()
	deployment := func(replicas, updated, available int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: gardenNS, Name: "server"},
			Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels}},
			Status:     appsv1.DeploymentStatus{Replicas: replicas, UpdatedReplicas: updated, AvailableReplicas: available},
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: gardenNS, Name: "new", Labels: labels}}
	leaving := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: gardenNS, Name: "old", Labels: labels, DeletionTimestamp: &now, Finalizers: []string{"test"},
	}}
	for _, test := range []struct {
		name    string
		objects []client.Object
		want    string
	}{
		{"nothing there", nil, "not found"},
		{"the old pod serves", []client.Object{deployment(2, 1, 2), pod}, "rolled out"},
		{"the new pod is not available", []client.Object{deployment(1, 1, 0), pod}, "rolled out"},
		{"the old pod is ending", []client.Object{deployment(1, 1, 1), pod, leaving}, "pod garden/old is still ending"},
		{"done", []client.Object{deployment(1, 1, 1), pod}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			missing, err := missingOfRollout(t.Context(), fake.NewClientBuilder().WithObjects(test.objects...).Build(), "server")
			if err != nil || (missing == "") != (test.want == "") || !strings.Contains(missing, test.want) {
				t.Errorf("missing = %q, %v; want %q", missing, err, test.want)
			}
		})
	}
}
