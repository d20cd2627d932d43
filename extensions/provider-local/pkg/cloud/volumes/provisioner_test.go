package volumes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func claim(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "c", UID: "1-2",
			Annotations: map[string]string{annotationStorageProvisioner: Provisioner},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new("default"),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
			},
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
		"new":   {func(*corev1.PersistentVolumeClaim) {}, true},
		"bound": {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" }, false},
		"someone elses": {
			func(c *corev1.PersistentVolumeClaim) { c.Annotations[annotationStorageProvisioner] = "other" }, false,
		},
		"not yet ours":  {func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }, false},
		"being deleted": {func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = new(metav1.Now()) }, false},
	} {
		if got := needsVolume(claim(test.change)); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestVolumeFor(t *testing.T) {
	volume := volumeFor(claim(func(*corev1.PersistentVolumeClaim) {}),
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, Options{Dir: "/volumes"})
	if volume.Name != "pvc-1-2" || volume.Spec.HostPath.Path != "/volumes/pvc-1-2" ||
		volume.Spec.ClaimRef.UID != "1-2" {
		t.Errorf("got %+v", volume)
	}
	if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete ||
		volume.Spec.NodeAffinity != nil {
		t.Errorf("got %+v", volume.Spec)
	}
	onOne := volumeFor(claim(func(c *corev1.PersistentVolumeClaim) { c.Annotations[annotationSelectedNode] = "m1" }),
		&storagev1.StorageClass{ReclaimPolicy: new(corev1.PersistentVolumeReclaimRetain)}, Options{Dir: "/volumes"})
	if onOne.Spec.NodeAffinity == nil ||
		onOne.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("got %+v", onOne.Spec)
	}
}

func TestIsReclaimable(t *testing.T) {
	volume := volumeFor(claim(func(*corev1.PersistentVolumeClaim) {}), &storagev1.StorageClass{}, Options{Dir: "/volumes"})
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

func request(object client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}

// A claim gets a folder that any user of a container may write to, and one volume, however often it is looked at.
func TestAClaimIsProvisionedOnce(t *testing.T) {
	asking := claim(func(*corev1.PersistentVolumeClaim) {})
	c := fake.NewClientBuilder().WithObjects(asking,
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}).Build()
	dir := t.TempDir()
	p := &provisioner{client: c, classes: c, options: Options{Dir: dir}}
	for range 2 {
		if _, err := p.Reconcile(t.Context(), request(asking)); err != nil {
			t.Fatal(err)
		}
	}
	volumes := &corev1.PersistentVolumeList{}
	if err := c.List(t.Context(), volumes); err != nil || len(volumes.Items) != 1 {
		t.Fatalf("got %v, %v", volumes.Items, err)
	}
	folder, err := os.Stat(volumes.Items[0].Spec.HostPath.Path)
	if err != nil || filepath.Dir(volumes.Items[0].Spec.HostPath.Path) != dir || folder.Mode().Perm() != 0o777 {
		t.Errorf("got %v, %v", folder, err)
	}
}

func TestClaimsThatGetNothing(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		err    string
	}{
		"of somebody else": {func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }, ""},
		"bound meanwhile":  {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" }, ""},
		"of a class that went": {
			func(*corev1.PersistentVolumeClaim) {}, `claim n/c: storageclasses.storage.k8s.io "default" not found`,
		},
	} {
		asking, dir := claim(test.change), t.TempDir()
		c := fake.NewClientBuilder().WithObjects(asking).Build()
		p := &provisioner{client: c, classes: c, options: Options{Dir: dir}}
		_, err := p.Reconcile(t.Context(), request(asking))
		if (err == nil) != (test.err == "") || (err != nil && !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%s: got %v", name, err)
		}
		if folders, err := os.ReadDir(dir); err != nil || len(folders) > 0 {
			t.Errorf("%s: got %v, %v", name, folders, err)
		}
	}
	c := fake.NewClientBuilder().Build()
	if _, err := (&provisioner{client: c, classes: c}).Reconcile(t.Context(),
		request(claim(func(*corev1.PersistentVolumeClaim) {}))); err != nil {
		t.Errorf("a claim that is gone: %v", err)
	}
}

// Only what was released goes, with all that was written into it.
func TestReclaim(t *testing.T) {
	for name, test := range map[string]struct {
		phase corev1.PersistentVolumePhase
		goes  bool
	}{
		"released": {corev1.VolumeReleased, true}, "bound": {corev1.VolumeBound, false},
	} {
		dir := t.TempDir()
		volume := volumeFor(claim(func(*corev1.PersistentVolumeClaim) {}), &storagev1.StorageClass{},
			Options{Dir: dir})
		volume.Status.Phase = test.phase
		for _, folder := range []string{volume.Name, "pvc-of-another"} {
			if err := os.MkdirAll(filepath.Join(dir, folder, "data", "deep"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		c := fake.NewClientBuilder().WithObjects(volume).Build()
		r := &reclaimer{client: c, options: Options{Dir: dir}}
		for range 2 {
			if _, err := r.Reconcile(t.Context(), request(volume)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		err := c.Get(t.Context(), client.ObjectKeyFromObject(volume), &corev1.PersistentVolume{})
		if apierrors.IsNotFound(err) != test.goes {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, volume.Name)); os.IsNotExist(err) != test.goes {
			t.Errorf("%s: folder: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "pvc-of-another", "data", "deep")); err != nil {
			t.Errorf("%s: folder of another volume: %v", name, err)
		}
	}
}

// Of several nodes each provides what was chosen for it, and removes what lies on it: a node that took another one's
// volume away would leave its data there. What no node was chosen for is the first one's, and is bound to it.
func TestEachNodeHasItsOwnVolumes(t *testing.T) {
	first, other := Options{Dir: "/volumes", Node: "n1"}, Options{Dir: "/volumes", Node: "n2", ChosenOnly: true}
	shared := Options{Dir: "/volumes"}
	for chosen, want := range map[string][3]bool{
		"": {true, false, true}, "n1": {true, false, true}, "n2": {false, true, true}, "n3": {false, false, true},
	} {
		asking := claim(func(c *corev1.PersistentVolumeClaim) {
			if chosen != "" {
				c.Annotations[annotationSelectedNode] = chosen
			}
		})
		if got := [3]bool{first.provides(asking), other.provides(asking), shared.provides(asking)}; got != want {
			t.Errorf("claim for %q: got %v, want %v", chosen, got, want)
		}
		volume := volumeFor(asking, &storagev1.StorageClass{}, shared)
		volume.Status.Phase = corev1.VolumeReleased
		if got := [3]bool{first.removes(volume), other.removes(volume), shared.removes(volume)}; got != want {
			t.Errorf("volume of %q: got %v, want %v", chosen, got, want)
		}
	}
	bound := volumeFor(claim(func(*corev1.PersistentVolumeClaim) {}), &storagev1.StorageClass{}, first)
	if nodeOf(bound) != "n1" {
		t.Errorf("got %+v", bound.Spec.NodeAffinity)
	}
}
