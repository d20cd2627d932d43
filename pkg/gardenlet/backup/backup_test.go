package backup

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extensionrights"
)

const entryName = "shoot--demo--s--uid"

func aBucket() *gardencorev1beta1.BackupBucket {
	return &gardencorev1beta1.BackupBucket{
		ObjectMeta: metav1.ObjectMeta{Name: "b", Generation: 1},
		Spec: gardencorev1beta1.BackupBucketSpec{
			SeedName: new("one"), Provider: gardencorev1beta1.BackupBucketProvider{Type: "cloud", Region: "moon"},
			ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"z": 1, "a": 2}`)},
			CredentialsRef: &corev1.ObjectReference{Kind: "Secret", Namespace: "garden", Name: "backup"},
		},
	}
}

func anEntry() *gardencorev1beta1.BackupEntry {
	return &gardencorev1beta1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: entryName, Generation: 1},
		Spec:       gardencorev1beta1.BackupEntrySpec{BucketName: "b", SeedName: new("one")},
	}
}

// world is a garden and a seed with the reconcilers between them.
type world struct {
	*testing.T
	Clients
	config config.BackupEntryController
	now    time.Time
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, gardencorev1beta1.AddToScheme, extensionsv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	objects = append(objects, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "backup"}, Data: map[string][]byte{"key": []byte("x")},
	})
	w := &world{T: t, now: time.Now().Truncate(time.Second)}
	w.Clients = Clients{
		Garden: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
			WithStatusSubresource(&gardencorev1beta1.BackupBucket{}, &gardencorev1beta1.BackupEntry{}).
			WithIndex(&gardencorev1beta1.BackupEntry{}, "spec.seedName", func(o client.Object) []string {
				return []string{ptr.Deref(o.(*gardencorev1beta1.BackupEntry).Spec.SeedName, "")}
			}).Build(),
		Seed: fake.NewClientBuilder().WithScheme(scheme).
			WithStatusSubresource(&extensionsv1alpha1.BackupBucket{}, &extensionsv1alpha1.BackupEntry{}).Build(),
		SeedName: "one", Now: func() time.Time { return w.now },
	}
	return w
}

// bucket reconciles the bucket and reads it.
func (w *world) bucket() *gardencorev1beta1.BackupBucket {
	w.Helper()
	object := &gardencorev1beta1.BackupBucket{}
	w.reconcile(&BucketReconciler{w.Clients}, client.ObjectKey{Name: "b"}, object)
	return object
}

// entry reconciles the entry and reads it.
func (w *world) entry() *gardencorev1beta1.BackupEntry {
	w.Helper()
	object := &gardencorev1beta1.BackupEntry{}
	w.reconcile(&EntryReconciler{w.Clients, w.config}, client.ObjectKey{Namespace: "garden-demo", Name: entryName},
		object)
	return object
}

type reconciler interface {
	Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error)
}

func (w *world) reconcile(r reconciler, key client.ObjectKey, into client.Object) {
	w.Helper()
	if _, err := r.Reconcile(w.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		w.Fatal(err)
	}
	if err := w.Garden.Get(w.Context(), key, into); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
}

// extend plays the extension: it succeeds with an object, or fails.
func (w *world) extend(object extension.Object, failure string, change func()) {
	w.Helper()
	if err := w.Seed.Get(w.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		w.Fatal(err)
	}
	annotations := object.GetAnnotations()
	delete(annotations, gardencorev1beta1.GardenerOperation)
	object.SetAnnotations(annotations)
	if err := w.Seed.Update(w.Context(), object); err != nil {
		w.Fatal(err)
	}
	status := object.GetExtensionStatus()
	status.ObservedGeneration, status.LastError = object.GetGeneration(), nil
	status.LastOperation = &gardencorev1beta1.LastOperation{
		State:          gardencorev1beta1.LastOperationStateSucceeded,
		LastUpdateTime: metav1.NewTime(time.Now().Add(time.Second)),
	}
	if failure != "" {
		status.LastError = &gardencorev1beta1.LastError{
			Description: failure, Codes: []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraUnauthorized},
		}
	}
	if change != nil {
		change()
	}
	if err := w.Seed.Status().Update(w.Context(), object); err != nil {
		w.Fatal(err)
	}
}

// expect compares an operation with what is wanted; an error if failed is not empty.
func (w *world) expect(last *gardencorev1beta1.LastOperation, lastError *gardencorev1beta1.LastError,
	operation gardencorev1beta1.LastOperationType, state gardencorev1beta1.LastOperationState, text string) {
	w.Helper()
	if last == nil || last.Type != operation || last.State != state || !strings.Contains(last.Description, text) {
		w.Fatalf("last operation is %+v, want %s %s with %q", last, operation, state, text)
	}
	if failed := state == gardencorev1beta1.LastOperationStateError; failed != (lastError != nil) ||
		failed && len(lastError.Codes) == 0 {
		w.Fatalf("last error is %+v", lastError)
	}
}

const (
	creation, reconciliation, deletion = gardencorev1beta1.LastOperationTypeCreate,
		gardencorev1beta1.LastOperationTypeReconcile, gardencorev1beta1.LastOperationTypeDelete
	processing, failed, succeeded = gardencorev1beta1.LastOperationStateProcessing,
		gardencorev1beta1.LastOperationStateError, gardencorev1beta1.LastOperationStateSucceeded
)

func TestBucket(t *testing.T) {
	w := newWorld(t, aBucket())
	b := w.bucket()
	w.expect(b.Status.LastOperation, b.Status.LastError, creation, processing, "has not picked up")
	if !slices.Contains(b.Finalizers, "gardener") || b.Status.ObservedGeneration != 1 {
		t.Errorf("bucket is %+v", b)
	}
	object := extensionBucket("b")
	w.extend(object, "no quota", nil)
	if string(object.Spec.ProviderConfig.Raw) != `{"a":2,"z":1}` || object.Spec.Type != "cloud" ||
		object.Spec.Region != "moon" || object.Spec.SecretRef.Name != "bucket-b" {
		t.Errorf("the extension is asked for %+v", object.Spec)
	}
	b = w.bucket()
	w.expect(b.Status.LastOperation, b.Status.LastError, creation, failed, "no quota")

	made := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden", Name: "made", Labels: map[string]string{extensionsv1alpha1.LabelBackupBucket: "b"},
		}, Data: map[string][]byte{
			"made": []byte("x"),
		},
	}
	if err := w.Seed.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	w.extend(object, "", func() {
		object.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: "garden", Name: "made"}
		object.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"id":"7"}`)}
	})
	b = w.bucket()
	w.expect(b.Status.LastOperation, b.Status.LastError, creation, succeeded, "as it should be")
	published := &corev1.Secret{}
	if err := w.Garden.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "generated-bucket-b"},
		published); err != nil || string(published.Data["made"]) != "x" {
		t.Errorf("the access to the bucket: %v, %v", published.Data, err)
	}
	if b.Status.GeneratedSecretRef == nil || b.Status.GeneratedSecretRef.Name != "generated-bucket-b" ||
		string(b.Status.ProviderStatus.Raw) != `{"id":"7"}` {
		t.Errorf("status is %+v", b.Status)
	}
	// Nothing happens without a reason; changed credentials are one.
	version := b.ResourceVersion
	w.now = w.now.Add(time.Hour)
	if b = w.bucket(); b.ResourceVersion != version {
		t.Error("the bucket was written again")
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "backup"}, Data: map[string][]byte{"key": []byte("y")},
	}
	if err := w.Garden.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	b = w.bucket()
	w.expect(b.Status.LastOperation, b.Status.LastError, reconciliation, processing, "has not picked up")
}

func TestBucketWithOtherCredentials(t *testing.T) {
	for kind, want := range map[string]string{
		"WorkloadIdentity": "only credentials in a Secret", "Secret": "reading Secret garden/gone",
	} {
		bucket := aBucket()
		bucket.Spec.CredentialsRef.Kind, bucket.Spec.CredentialsRef.Name = kind, "gone"
		w := newWorld(t, bucket)
		b := w.bucket()
		w.expect(b.Status.LastOperation, b.Status.LastError, creation, failed, want)
		if !slices.Contains(b.Status.LastError.Codes, gardencorev1beta1.ErrorConfigurationProblem) {
			t.Errorf("%s: codes are %v", kind, b.Status.LastError.Codes)
		}
	}
}

func TestBucketOfAnotherSeed(t *testing.T) {
	bucket := aBucket()
	bucket.Spec.SeedName = new("two")
	w := newWorld(t, bucket)
	if b := w.bucket(); len(b.Finalizers) > 0 || b.Status.LastOperation != nil {
		t.Errorf("bucket is %+v", b)
	}
}

// ready makes a bucket and an entry that are as they should be.
func ready(t *testing.T, entry *gardencorev1beta1.BackupEntry) *world {
	t.Helper()
	w := newWorld(t, aBucket(), entry)
	e := w.entry()
	w.expect(e.Status.LastOperation, e.Status.LastError, creation, processing, "waiting until BackupBucket b is ready")
	w.bucket()
	w.extend(extensionBucket("b"), "", nil)
	w.bucket()
	e = w.entry()
	w.expect(e.Status.LastOperation, e.Status.LastError, creation, processing, "has not picked up")
	w.extend(extensionEntry(entryName), "", nil)
	e = w.entry()
	w.expect(e.Status.LastOperation, e.Status.LastError, creation, succeeded, "as it should be")
	if *e.Status.SeedName != "one" || e.Status.ObservedGeneration != 1 {
		t.Errorf("status is %+v", e.Status)
	}
	return w
}

func (w *world) delete(object client.Object) {
	w.Helper()
	if err := w.Garden.Delete(w.Context(), object); err != nil {
		w.Fatal(err)
	}
}

// letGo plays an extension that finishes a deletion.
func (w *world) letGo(object extension.Object) {
	w.Helper()
	if err := w.Seed.Get(w.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		w.Fatal(err)
	}
	if object.GetDeletionTimestamp() == nil {
		w.Fatalf("%s is not being deleted", object.GetName())
	}
	object.SetFinalizers(nil)
	if err := w.Seed.Update(w.Context(), object); err != nil {
		w.Fatal(err)
	}
}

// hold plays an extension that has put its finalizer.
func (w *world) hold(object extension.Object) {
	w.Helper()
	if err := w.Seed.Get(w.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		w.Fatal(err)
	}
	object.SetFinalizers([]string{"extension"})
	if err := w.Seed.Update(w.Context(), object); err != nil {
		w.Fatal(err)
	}
}

func TestDeletion(t *testing.T) {
	w := ready(t, anEntry())
	bucket, entry := extensionBucket("b"), extensionEntry(entryName)
	w.hold(bucket)
	w.hold(entry)
	w.delete(aBucket())
	b := w.bucket()
	w.expect(b.Status.LastOperation, b.Status.LastError, deletion, failed, "used by BackupEntry garden-demo/"+entryName)

	w.delete(anEntry())
	e := w.entry()
	w.expect(e.Status.LastOperation, e.Status.LastError, deletion, processing, "has not finished the deletion")
	w.letGo(entry)
	if e = w.entry(); e.Name != "" {
		t.Errorf("the entry is left: %+v", e.Status)
	}
	b = w.bucket()
	w.expect(b.Status.LastOperation, b.Status.LastError, deletion, processing, "has not finished the deletion")
	w.letGo(bucket)
	if b = w.bucket(); b.Name != "" {
		t.Errorf("the bucket is left: %+v", b.Status)
	}
	left := &corev1.SecretList{}
	if err := w.Seed.List(t.Context(), left); err != nil || len(left.Items) > 0 {
		t.Errorf("Secrets of the seed that are left: %+v, %v", left.Items, err)
	}
}

func TestGracePeriod(t *testing.T) {
	for name, test := range map[string]struct {
		config      config.BackupEntryController
		annotations map[string]string
		waits       bool
	}{
		"none":    {config.BackupEntryController{}, nil, false},
		"for all": {config.BackupEntryController{DeletionGracePeriodHours: 2}, nil, true},
		"for all, but forced": {
			config.BackupEntryController{DeletionGracePeriodHours: 2},
			map[string]string{"backupentry.core.gardener.cloud/force-deletion": "true"}, false,
		},
		"for the purpose": {
			config.BackupEntryController{
				DeletionGracePeriodHours: 2, DeletionGracePeriodShootPurposes: []gardencorev1beta1.ShootPurpose{
					"production",
				},
			}, map[string]string{
				"shoot.gardener.cloud/purpose": "production",
			}, true,
		},
		"for another purpose": {
			config.BackupEntryController{
				DeletionGracePeriodHours: 2, DeletionGracePeriodShootPurposes: []gardencorev1beta1.ShootPurpose{
					"production",
				},
			}, map[string]string{
				"shoot.gardener.cloud/purpose": "testing",
			}, false,
		},
		"for a purpose, not known": {
			config.BackupEntryController{
				DeletionGracePeriodHours: 2, DeletionGracePeriodShootPurposes: []gardencorev1beta1.ShootPurpose{
					"production",
				},
			}, nil, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			entry := anEntry()
			entry.Annotations = test.annotations
			w := ready(t, entry)
			w.config = test.config
			w.delete(anEntry())
			e := w.entry()
			if !test.waits {
				if e.Name != "" {
					t.Fatalf("the entry is left: %+v", e.Status)
				}
				return
			}
			w.expect(e.Status.LastOperation, e.Status.LastError, deletion, processing, "the backups are kept until")
			if err := w.Seed.Get(t.Context(), client.ObjectKey{Name: entryName}, extensionEntry("")); err != nil {
				t.Error(err)
			}
			w.now = w.now.Add(3 * time.Hour)
			if e = w.entry(); e.Name != "" {
				t.Errorf("the entry is left after the period: %+v", e.Status)
			}
		})
	}
}

func TestEntriesOfTheSameName(t *testing.T) {
	w := ready(t, anEntry())
	other := anEntry()
	other.Namespace = "garden-other"
	if err := w.Garden.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	reconciler, e := &EntryReconciler{w.Clients, w.config}, &gardencorev1beta1.BackupEntry{}
	w.reconcile(reconciler, client.ObjectKeyFromObject(other), e)
	w.expect(e.Status.LastOperation, e.Status.LastError, creation, failed,
		"belongs to BackupEntry garden-demo/"+entryName)
	w.delete(other)
	if _, err := reconciler.Reconcile(t.Context(),
		ctrl.Request{NamespacedName: client.ObjectKeyFromObject(other)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Garden.Get(t.Context(), client.ObjectKeyFromObject(other), other); !apierrors.IsNotFound(err) {
		t.Errorf("the other entry: %v", err)
	}
	if err := w.Seed.Get(t.Context(), client.ObjectKey{Name: entryName}, extensionEntry("")); err != nil {
		t.Errorf("the directory of the first entry: %v", err)
	}
}

func TestEntryWithoutABucket(t *testing.T) {
	w := newWorld(t, anEntry())
	e := w.entry()
	w.expect(e.Status.LastOperation, e.Status.LastError, creation, failed, "there is no BackupBucket b")
}

// The extension of an entry writes the Secret for etcd, so it gets its rights there before it is asked to.
func TestRightsInTheNamespaceOfTheShoot(t *testing.T) {
	w := newWorld(t, aBucket(), anEntry())
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name: "writer", Labels: map[string]string{extensionrights.LabelRegistration: "cloud"},
		Annotations: map[string]string{
			extensionsv1alpha1.AnnotationRoleResources:      "BackupEntry/cloud",
			extensionsv1alpha1.AnnotationRoleServiceAccount: "cloud",
		},
	}}
	ofShoot := map[string]string{gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleShoot}
	for _, object := range []client.Object{
		role, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shoot--demo--s", Labels: ofShoot}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shoot--demo--other", Labels: ofShoot}},
	} {
		if err := w.Seed.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	w.bucket()
	w.extend(extensionBucket("b"), "", nil)
	w.bucket()
	w.entry()
	bindings := &rbacv1.RoleBindingList{}
	if err := w.Seed.List(t.Context(), bindings); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, binding := range bindings.Items {
		if binding.RoleRef.Name == role.Name {
			found = append(found, binding.Namespace)
		}
	}
	if !slices.Equal(found, []string{"shoot--demo--s"}) {
		t.Errorf("the role is bound in %q", found)
	}
	if err := w.Seed.Get(t.Context(), client.ObjectKey{Name: entryName}, extensionEntry("")); err != nil {
		t.Error(err)
	}
}
