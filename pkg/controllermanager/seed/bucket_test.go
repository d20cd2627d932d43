package seed

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/controllermanager/index/indextest"
)

func seedWithBackup(name string, backup *gardencorev1beta1.Backup) *gardencorev1beta1.Seed {
	return &gardencorev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: "uid-1", Finalizers: []string{gardencorev1beta1.GardenerName},
		},
		Spec: gardencorev1beta1.SeedSpec{
			Provider: gardencorev1beta1.SeedProvider{Type: "cloud", Region: "here"}, Backup: backup,
		},
	}
}

// bucketsAfter are the buckets after the seed was looked at, twice.
func bucketsAfter(t *testing.T, c client.Client, seed string) []gardencorev1beta1.BackupBucket {
	t.Helper()
	for range 2 {
		_, err := (&BucketReconciler{Client: c}).Reconcile(t.Context(),
			reconcile.Request{NamespacedName: client.ObjectKey{Name: seed}})
		if err != nil {
			t.Fatal(err)
		}
	}
	list := &gardencorev1beta1.BackupBucketList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestBucketOfASeed(t *testing.T) {
	ref := func(name string) *corev1.ObjectReference {
		return &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: name}
	}
	seed := seedWithBackup("a", &gardencorev1beta1.Backup{
		Provider: "store", CredentialsRef: ref("backup"),
		ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"a":1}`)},
	})
	c := indextest.NewClientBuilder().WithObjects(seed, seedWithBackup("without", nil)).Build()
	want := gardencorev1beta1.BackupBucketSpec{
		SeedName: new("a"), Provider: gardencorev1beta1.BackupBucketProvider{Type: "store", Region: "here"},
		ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}, CredentialsRef: ref("backup"),
	}
	if made := bucketsAfter(t, c, "without"); len(made) != 0 {
		t.Fatalf("a seed without backups has the buckets %v", made)
	}
	made := bucketsAfter(t, c, "a")
	if len(made) != 1 || made[0].Name != "uid-1" || cmp.Diff(want, made[0].Spec) != "" {
		t.Fatalf("made are %+v, want %+v", made, want)
	}

	seed.Spec.Backup.CredentialsRef = ref("other")
	if err := c.Update(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	want.CredentialsRef = ref("other")
	if changed := bucketsAfter(t, c, "a"); cmp.Diff(want, changed[0].Spec) != "" {
		t.Errorf("changed to %+v, want %+v", changed[0].Spec, want)
	}

	if err := c.Delete(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	if left := bucketsAfter(t, c, "a"); len(left) != 0 {
		t.Errorf("after the seed was deleted there are %v", left)
	}
}

// The seed's gardenlet removes what is in the store before it lets the bucket go; it is left alone meanwhile.
func TestABucketThatIsBeingDeletedIsNotMadeAgain(t *testing.T) {
	seed := seedWithBackup("a", &gardencorev1beta1.Backup{Provider: "store", Region: new("there")})
	c := indextest.NewClientBuilder().WithObjects(seed).Build()
	bucket := bucketsAfter(t, c, "a")[0]
	if bucket.Spec.Provider.Region != "there" {
		t.Errorf("the bucket is in %s", bucket.Spec.Provider.Region)
	}
	bucket.Finalizers = []string{gardencorev1beta1.GardenerName}
	if err := c.Update(t.Context(), &bucket); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), &bucket); err != nil {
		t.Fatal(err)
	}
	if left := bucketsAfter(t, c, "a"); len(left) != 1 || left[0].DeletionTimestamp == nil {
		t.Errorf("there are %+v", left)
	}
}
