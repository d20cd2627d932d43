package seed

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/controllermanager/index/indextest"
)

// installation has the conditions Valid, Installed, Healthy and Progressing with the given statuses, as far as they are
// given.
func installation(name string, statuses ...gardencorev1beta1.ConditionStatus) gardencorev1beta1.ControllerInstallation {
	types := []gardencorev1beta1.ConditionType{
		gardencorev1beta1.ControllerInstallationValid, gardencorev1beta1.ControllerInstallationInstalled,
		gardencorev1beta1.ControllerInstallationHealthy, gardencorev1beta1.ControllerInstallationProgressing,
	}
	result := gardencorev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: gardencorev1beta1.ControllerInstallationSpec{
			RegistrationRef: corev1.ObjectReference{Name: name}, SeedRef: &corev1.ObjectReference{Name: "a"},
		}}
	for i, status := range statuses {
		result.Status.Conditions = append(result.Status.Conditions,
			gardencorev1beta1.Condition{Type: types[i], Status: status, Message: "because"})
	}
	return result
}

func TestExtensionsReady(t *testing.T) {
	healthy := installation("healthy", "True", "True", "True", "False")
	tests := map[string]struct {
		installations []gardencorev1beta1.ControllerInstallation
		status        gardencorev1beta1.ConditionStatus
		message       string
	}{
		"none": {nil, "True", "All extensions"},
		"all":  {[]gardencorev1beta1.ControllerInstallation{healthy}, "True", "All extensions"},
		"unreported": {
			[]gardencorev1beta1.ControllerInstallation{healthy, installation("new", "True")}, "False",
			"new: Installed is not reported yet",
		},
		"unhealthy": {
			[]gardencorev1beta1.ControllerInstallation{
				installation("b", "True", "True", "False"), installation("a", "False"),
			}, "False", "a: Valid is False: because; b: Healthy is False: because",
		},
		"being rolled": {
			[]gardencorev1beta1.ControllerInstallation{installation("a", "True", "True", "True", "True")}, "False",
			"a: Progressing is True",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ExtensionsReady(test.installations); got.Status != test.status ||
				!strings.HasPrefix(got.Message, test.message) {
				t.Errorf("condition = %s: %s; want %s: %s", got.Status, got.Message, test.status, test.message)
			}
		})
	}
}

func bucket(name string, state gardencorev1beta1.LastOperationState, failure string) gardencorev1beta1.BackupBucket {
	result := gardencorev1beta1.BackupBucket{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: gardencorev1beta1.BackupBucketSpec{SeedName: new("a")},
	}
	if state != "" {
		result.Status.LastOperation = &gardencorev1beta1.LastOperation{State: state}
	}
	if failure != "" {
		result.Status.LastError = &gardencorev1beta1.LastError{Description: failure}
	}
	return result
}

func TestBackupBucketsReady(t *testing.T) {
	tests := map[string]struct {
		buckets []gardencorev1beta1.BackupBucket
		status  gardencorev1beta1.ConditionStatus
		message string
	}{
		"gone":  {nil, "Unknown", "gone"},
		"ready": {[]gardencorev1beta1.BackupBucket{bucket("x", "Succeeded", "")}, "True", "available"},
		"pending": {
			[]gardencorev1beta1.BackupBucket{bucket("x", "", ""), bucket("y", "Succeeded", "")}, "Progressing",
			"ready yet: x",
		},
		"failed": {
			[]gardencorev1beta1.BackupBucket{bucket("y", "Error", "no access"), bucket("x", "Error", "no space")},
			"False", "x: no space; y: no access",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := BackupBucketsReady(test.buckets); got.Status != test.status ||
				!strings.Contains(got.Message, test.message) {
				t.Errorf("condition = %s: %s; want %s: %s", got.Status, got.Message, test.status, test.message)
			}
		})
	}
}

func TestCareLeavesOtherConditionsAlone(t *testing.T) {
	ctx := context.Background()
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	seed.Status.Conditions = []gardencorev1beta1.Condition{
		{Type: gardencorev1beta1.SeedGardenletReady, Status: "True"},
		{Type: gardencorev1beta1.SeedBackupBucketsReady, Status: "False"},
	}
	unready := installation("flannel")
	c := indextest.NewClientBuilder().WithObjects(seed, &unready).WithStatusSubresource(seed).Build()
	r := &CareReconciler{Client: c, Now: time.Now}
	if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(seed)}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(seed), seed); err != nil {
		t.Fatal(err)
	}
	list := seed.Status.Conditions
	if !conditions.IsTrue(list, gardencorev1beta1.SeedGardenletReady) ||
		conditions.Get(list, gardencorev1beta1.SeedExtensionsReady) == nil {
		t.Errorf("conditions = %+v", list)
	}
	if conditions.Get(list, gardencorev1beta1.SeedBackupBucketsReady) != nil {
		t.Error("a seed without backups has a condition about buckets")
	}
}
