package backup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// TestAttackBucketNamesSecrets plays an extension that has gardenlet copy any Secret of the seed to where the extension
// may read it: into the garden as the access to its bucket, and from there into the Secret that it gets for an entry.
func TestAttackBucketNamesSecrets(t *testing.T) {
	for _, named := range []corev1.SecretReference{
		{Namespace: "shoot--foreign--one", Name: "cloudprovider"}, {Namespace: "garden", Name: "gardenlet-kubeconfig"},
		{Namespace: "garden", Name: "generated-bucket-other"},
		{Namespace: "shoot--foreign--one", Name: "generated-bucket-b"}, {Namespace: "garden", Name: "missing"},
	} {
		t.Run(named.Namespace+"/"+named.Name, func(t *testing.T) {
			w := newWorld(t, aBucket(), anEntry())
			prize := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: named.Namespace, Name: named.Name,
					Labels: map[string]string{extensionsv1alpha1.LabelBackupBucket: "other"},
				},
				Data: map[string][]byte{"key": []byte("prize")},
			}
			if named.Name != "missing" {
				if err := w.Seed.Create(t.Context(), prize); err != nil {
					t.Fatal(err)
				}
			}
			w.bucket()
			object := extensionBucket("b")
			w.extend(object, "", func() { object.Status.GeneratedSecretRef = &named })
			bucket := w.bucket()
			w.expect(bucket.Status.LastOperation, bucket.Status.LastError, creation, failed,
				"status.generatedSecretRef, and there is none of that name with label")
			published := client.ObjectKey{
				Namespace: "garden", Name: gardencorev1beta1.GeneratedBackupBucketSecretPrefix + "b",
			}
			if err := w.Garden.Get(t.Context(), published, &corev1.Secret{}); !apierrors.IsNotFound(err) ||
				bucket.Status.GeneratedSecretRef != nil {
				t.Errorf("the Secret is published: %v, %+v", err, bucket.Status)
			}
		})
	}
}
