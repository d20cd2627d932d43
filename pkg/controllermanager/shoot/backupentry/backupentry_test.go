package backupentry

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/controllermanager/index/indextest"
)

// Backups go with their shoot, once it is to be restored, and stay in their bucket.
func TestBackupsOfARestoredShoot(t *testing.T) {
	restoring := func(s *gardencorev1beta1.Shoot) { s.Status.BeginRestore("one", "two", metav1.Now()) }
	for what, test := range map[string]struct {
		change     func(*gardencorev1beta1.Shoot)
		spec, last string
	}{
		"restored":  {restoring, "two", ""},
		"elsewhere": {func(*gardencorev1beta1.Shoot) {}, "one", "one"},
		"whole again": {func(s *gardencorev1beta1.Shoot) {
			restoring(s)
			s.Status.LastOperation.State = gardencorev1beta1.LastOperationStateSucceeded
		}, "one", "one"},
	} {
		shoot := &gardencorev1beta1.Shoot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1", UID: "uid"},
			Spec:       gardencorev1beta1.ShootSpec{SeedName: new("two")},
			Status:     gardencorev1beta1.ShootStatus{TechnicalID: "shoot--demo--member1"},
		}
		test.change(shoot)
		entry := &gardencorev1beta1.BackupEntry{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "shoot--demo--member1--uid"},
			Spec:       gardencorev1beta1.BackupEntrySpec{BucketName: "bucket", SeedName: new("one")},
			Status:     gardencorev1beta1.BackupEntryStatus{SeedName: new("one")},
		}
		c := indextest.NewClientBuilder().WithObjects(shoot, entry).
			WithStatusSubresource(&gardencorev1beta1.BackupEntry{}).Build()
		for range 2 {
			_, err := (&Reconciler{Client: c}).Reconcile(t.Context(),
				reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shoot)})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(entry), entry); err != nil {
			t.Fatal(err)
		}
		if *entry.Spec.SeedName != test.spec || ptr.Deref(entry.Status.SeedName, "") != test.last ||
			entry.Spec.BucketName != "bucket" {
			t.Errorf("%s: the entry is %+v %+v", what, entry.Spec, entry.Status)
		}
	}
}

func TestBackupsThatAreMissing(t *testing.T) {
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1", UID: "uid"},
		Spec:       gardencorev1beta1.ShootSpec{SeedName: new("two")},
	}
	shoot.Status.BeginRestore("one", "two", metav1.Now())
	c := indextest.NewClientBuilder().WithObjects(shoot).Build()
	_, err := (&Reconciler{Client: c}).Reconcile(t.Context(),
		reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shoot)})
	if err == nil {
		t.Error("it is not told that there are none")
	}
}
