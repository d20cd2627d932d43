package cloudprofile

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

var start = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func in(d time.Duration) *metav1.Time { return new(metav1.NewTime(start.Add(d))) }

func newProfile() *gardencorev1beta1.CloudProfile {
	return &gardencorev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"},
		Spec: gardencorev1beta1.CloudProfileSpec{
			Kubernetes: gardencorev1beta1.KubernetesSettings{Versions: []gardencorev1beta1.ExpirableVersion{
				{Version: "1.36.3"}, {
					Version: "1.35.4", Classification: new(gardencorev1beta1.ClassificationDeprecated),
					ExpirationDate: in(2 * time.Hour),
				},
			}},
			MachineImages: []gardencorev1beta1.MachineImage{{Name: "debian",
				Versions: []gardencorev1beta1.MachineImageVersion{
					{
						ExpirableVersion: gardencorev1beta1.ExpirableVersion{Version: "12.1.0",
							Lifecycle: []gardencorev1beta1.LifecycleStage{
								{Classification: gardencorev1beta1.ClassificationPreview},
								{Classification: gardencorev1beta1.ClassificationSupported, StartTime: in(time.Hour)},
							}},
					},
				}}},
		}}
}

func TestStatusFollowsTheCalendar(t *testing.T) {
	ctx := context.Background()
	profile, now := newProfile(), start
	r := &Reconciler{
		Client: fake.NewClientBuilder().
			WithScheme(apis.GardenScheme()).WithObjects(profile).WithStatusSubresource(profile).Build(),
		Now: func() time.Time { return now },
	}
	for _, step := range []struct {
		after      time.Duration
		old, image gardencorev1beta1.VersionClassification
		next       time.Duration
	}{
		{0, "deprecated", "preview", time.Hour},
		{time.Hour, "deprecated", "supported", time.Hour},
		{2 * time.Hour, "expired", "supported", 0},
	} {
		now = start.Add(step.after)
		result, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(profile)})
		if err != nil || result.RequeueAfter != step.next {
			t.Fatalf("after %s: result %+v, %v; want it to come back after %s", step.after, result, err, step.next)
		}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(profile), profile); err != nil {
			t.Fatal(err)
		}
		kubernetes, images := profile.Status.Kubernetes.Versions, profile.Status.MachineImages
		if kubernetes[0].Classification != "supported" || kubernetes[1].Classification != step.old ||
			images[0].Versions[0].Classification != step.image {
			t.Errorf("after %s: status %+v, %+v", step.after, kubernetes, images)
		}
	}
}

func TestStatusOfAnEmptyProfile(t *testing.T) {
	if status := Status(&gardencorev1beta1.CloudProfileSpec{}, start); status.Kubernetes != nil ||
		len(status.MachineImages) > 0 {
		t.Errorf("status = %+v", status)
	}
}
