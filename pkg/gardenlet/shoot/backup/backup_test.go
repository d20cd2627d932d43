package backup

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/errorcodes"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

const name = "shoot--demo--member1--b8a8d6a4-0000-4000-8000-000000000000"

// backup is that of a shoot on a seed with a store.
func backup(t *testing.T) *Backup {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := gardencorev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &Backup{
		Plan: plantest.New(t, plantest.BackedUp), SeedName: "local",
		Garden: fake.NewClientBuilder().WithScheme(scheme).
			WithStatusSubresource(&gardencorev1beta1.BackupEntry{}).Build(),
		Seed: seedWith(t, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--demo--member1", Name: "etcd-backup"},
		}),
	}
}

func seedWith(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, extensionsv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// In a restore, the entry is there before the control plane: it may be another seed's still, and its extension may have
// had no namespace to write access to. Then it is asked once more.
func TestTheEntryOfARestoredShoot(t *testing.T) {
	b := backup(t)
	if err := b.deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	entry := b.entry(t)
	entry.Spec.SeedName = new("lost")
	if err := b.Garden.Update(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	if err := b.check(t.Context()); err == nil || !strings.Contains(err.Error(), "not given it to this seed") {
		t.Errorf("while it is another seed's: %v", err)
	}
	entry.Spec.SeedName = new("local")
	if err := b.Garden.Update(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	succeeded := &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateSucceeded}
	entry.Status.LastOperation = succeeded
	if err := b.Garden.Status().Update(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	object := &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: name}}
	object.Status.LastOperation = succeeded
	b.Seed = seedWith(t, object)
	if err := b.check(t.Context()); err == nil || !strings.Contains(err.Error(), "asked once more") {
		t.Errorf("without access: %v", err)
	}
	if err := b.Seed.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil ||
		object.Annotations[gardencorev1beta1.GardenerOperation] != "reconcile" {
		t.Errorf("the extension is asked by %v, %v", object.Annotations, err)
	}
}

func (b *Backup) entry(t *testing.T) *gardencorev1beta1.BackupEntry {
	t.Helper()
	entry := &gardencorev1beta1.BackupEntry{}
	if err := b.Garden.Get(t.Context(), client.ObjectKey{Namespace: "garden-demo", Name: name}, entry); err != nil {
		t.Fatal(err)
	}
	return entry
}

func TestTheEntryOfAShoot(t *testing.T) {
	b := backup(t)
	for range 2 {
		if err := b.deploy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	entry := b.entry(t)
	if entry.Spec.BucketName != "seed-uid" || *entry.Spec.SeedName != "local" ||
		entry.Annotations[gardencorev1beta1.AnnotationShootPurpose] != "production" {
		t.Errorf("made is %+v", entry)
	}
	if errs := gardencorev1beta1.ValidateNewBackupEntry(entry); len(errs) > 0 {
		t.Error(errs)
	}
}

func TestWaitingForTheEntry(t *testing.T) {
	operation := func(state gardencorev1beta1.LastOperationState) *gardencorev1beta1.LastOperation {
		return &gardencorev1beta1.LastOperation{State: state, Description: "waiting until the bucket is ready"}
	}
	for what, test := range map[string]struct {
		status gardencorev1beta1.BackupEntryStatus
		want   string
	}{
		"new": {gardencorev1beta1.BackupEntryStatus{}, "nothing is known of it yet"},
		"at work": {
			gardencorev1beta1.BackupEntryStatus{
				LastOperation: operation(gardencorev1beta1.LastOperationStateProcessing),
			}, "waiting until the bucket is ready",
		},
		"failed": {gardencorev1beta1.BackupEntryStatus{
			LastOperation: operation(gardencorev1beta1.LastOperationStateError),
			LastError: &gardencorev1beta1.LastError{
				Description: "no access",
				Codes:       []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraUnauthorized},
			},
		}, "no access"},
		"of before": {
			gardencorev1beta1.BackupEntryStatus{
				LastOperation:      operation(gardencorev1beta1.LastOperationStateSucceeded),
				ObservedGeneration: 7,
			}, "waiting until the bucket is ready",
		},
		"ready": {
			gardencorev1beta1.BackupEntryStatus{
				LastOperation: operation(gardencorev1beta1.LastOperationStateSucceeded),
			}, "",
		},
	} {
		b := backup(t)
		if err := b.deploy(t.Context()); err != nil {
			t.Fatal(err)
		}
		entry := b.entry(t)
		entry.Status = test.status
		if err := b.Garden.Status().Update(t.Context(), entry); err != nil {
			t.Fatal(err)
		}
		err := b.check(t.Context())
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", what, err, test.want)
		}
		if what == "failed" && !slices.Contains(errorcodes.Of(err), gardencorev1beta1.ErrorInfraUnauthorized) {
			t.Errorf("%s: codes are %v", what, errorcodes.Of(err))
		}
	}
}

// The controller of BackupEntries keeps it, by its finalizer, as long as backups are kept.
func TestTheEntryGoesWithTheShoot(t *testing.T) {
	b := backup(t)
	shoot := b.Plan.Identity
	if err := Remove(t.Context(), b.Garden, shoot); err != nil {
		t.Fatalf("without an entry: %v", err)
	}
	if err := b.deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	entry := b.entry(t)
	entry.Finalizers = []string{gardencorev1beta1.GardenerName}
	if err := b.Garden.Update(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Remove(t.Context(), b.Garden, shoot); err != nil {
			t.Fatal(err)
		}
	}
	if entry = b.entry(t); entry.DeletionTimestamp == nil {
		t.Error("it is not being deleted")
	}
	if err := b.check(t.Context()); err == nil || !strings.Contains(err.Error(), "is being deleted") {
		t.Errorf("a shoot would be backed up to it: %v", err)
	}
	other := plan.Identity{Namespace: shoot.Namespace, ShootNamespace: shoot.ShootNamespace, UID: "another"}
	if err := Remove(t.Context(), b.Garden, other); err != nil {
		t.Errorf("of another shoot: %v", err)
	}
}
