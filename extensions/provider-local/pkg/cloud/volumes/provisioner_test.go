package volumes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func claim(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1-2", Annotations: map[string]string{annotationStorageProvisioner: Provisioner}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To("default"),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
		},
	}
	change(c)
	return c
}

func TestNeedsVolume(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   bool
	}{
		"new":           {func(*corev1.PersistentVolumeClaim) {}, true},
		"bound":         {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" }, false},
		"someone elses": {func(c *corev1.PersistentVolumeClaim) { c.Annotations[annotationStorageProvisioner] = "other" }, false},
		"not yet ours":  {func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }, false},
		"being deleted": {func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = ptr.To(metav1.Now()) }, false},
	} {
		if got := needsVolume(claim(test.change)); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestVolumeFor(t *testing.T) {
	volume := volumeFor(claim(func(*corev1.PersistentVolumeClaim) {}), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, "/volumes")
	if volume.Name != "pvc-1-2" || volume.Spec.HostPath.Path != "/volumes/pvc-1-2" || volume.Spec.ClaimRef.UID != "1-2" {
		t.Errorf("got %+v", volume)
	}
	if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || volume.Spec.NodeAffinity != nil {
		t.Errorf("got %+v", volume.Spec)
	}
	onOne := volumeFor(claim(func(c *corev1.PersistentVolumeClaim) { c.Annotations[annotationSelectedNode] = "m1" }),
		&storagev1.StorageClass{ReclaimPolicy: ptr.To(corev1.PersistentVolumeReclaimRetain)}, "/volumes")
	if onOne.Spec.NodeAffinity == nil || onOne.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("got %+v", onOne.Spec)
	}
}

func TestIsReclaimable(t *testing.T) {
	volume := volumeFor(claim(func(*corev1.PersistentVolumeClaim) {}), &storagev1.StorageClass{}, "/volumes")
	if isReclaimable(volume) {
		t.Error("a volume in use must stay")
	}
	volume.Status.Phase = corev1.VolumeReleased
	if !isReclaimable(volume) {
		t.Error("a released volume must go")
	}
	volume.Annotations = nil
	if isReclaimable(volume) {
		t.Error("volumes of others must stay")
	}
}
