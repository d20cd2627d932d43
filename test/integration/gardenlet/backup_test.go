package gardenlet

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// testBackup makes a bucket and an entry in it, and deletes them in the wrong order and the right one.
func testBackup(t *testing.T) {
	ctx := context.Background()
	bucket := &gardencorev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "store"},
		Spec: gardencorev1beta1.BackupBucketSpec{
			SeedName: new("local"), Provider: gardencorev1beta1.BackupBucketProvider{Type: "local", Region: "local"},
			CredentialsRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "store",
			},
		}}
	entry := &gardencorev1beta1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden-demo", Name: "shoot--demo--gone--6f2c1e5a-6c53-4b6f-9d3f-2b3a4c5d6e7f",
		},
		Spec: gardencorev1beta1.BackupEntrySpec{BucketName: "store", SeedName: new("local")},
	}
	create(t, &corev1.Secret{ObjectMeta: readable("store"), Data: map[string][]byte{"key": []byte("x")}}, bucket, entry)
	for _, object := range []struct {
		client.Object
		last func() *gardencorev1beta1.LastOperation
	}{
		{bucket, func() *gardencorev1beta1.LastOperation { return bucket.Status.LastOperation }},
		{entry, func() *gardencorev1beta1.LastOperation { return entry.Status.LastOperation }},
	} {
		eventually(t, func() error {
			if err := get(object.Object); err != nil {
				return err
			}
			if last := object.last(); last == nil || last.State != gardencorev1beta1.LastOperationStateSucceeded {
				return fmt.Errorf("%s: last operation is %+v", object.GetName(), last)
			}
			return nil
		})
	}
	made := &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: entry.Name}}
	if err := get(made); err != nil || made.Spec.BucketName != "store" || made.Spec.Region != "local" {
		t.Errorf("the extension is asked for %+v, %v", made.Spec, err)
	}
	access := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "generated-bucket-store"}}
	if err := get(access); err != nil || string(access.Data["key"]) != "x" {
		t.Errorf("the access to the bucket: %v, %v", access.Data, err)
	}
	err := c.Delete(ctx, bucket)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), entry.Name) {
		t.Errorf("deletion of the used bucket: %v, want it to name the entry", err)
	}
	gardenlet, err := env.ClientFor(gardencorev1beta1.SeedUserNamePrefix+"local", gardencorev1beta1.SeedsGroup)
	if err != nil {
		t.Fatal(err)
	}
	another := bucket.DeepCopy()
	another.ObjectMeta = metav1.ObjectMeta{Name: "thief"}
	if err := gardenlet.Create(ctx, another); !apierrors.IsForbidden(err) {
		t.Errorf("a gardenlet makes a bucket: %v, want it forbidden", err)
	}
	for _, object := range []client.Object{entry, bucket} {
		if err := c.Delete(ctx, object); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error {
			if err := get(object); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s is left: %v", object.GetName(), err)
			}
			return nil
		})
	}
	for _, object := range []client.Object{
		made, &extensionsv1alpha1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "store"}}, access,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "bucket-store"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "entry-" + entry.Name}},
	} {
		if err := get(object); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s is left: %v", object, object.GetName(), err)
		}
	}
}
