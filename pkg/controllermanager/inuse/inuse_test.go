package inuse

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func shootWith(spec gardencorev1beta1.ShootSpec) *gardencorev1beta1.Shoot {
	return &gardencorev1beta1.Shoot{ObjectMeta: objectMeta("garden-demo", "member1"), Spec: spec}
}

func TestObjectsStayWhileInUse(t *testing.T) {
	quotas := []corev1.ObjectReference{{Namespace: "garden-demo", Name: "a"}}
	profile := func(kind string) *gardencorev1beta1.CloudProfileReference {
		return &gardencorev1beta1.CloudProfileReference{Kind: kind, Name: "a"}
	}
	tests := map[string]struct {
		reconciler *Reconciler
		object     client.Object
		users      []client.Object
	}{
		"quota": {
			Quotas(), &gardencorev1beta1.Quota{ObjectMeta: objectMeta("garden-demo", "a")},
			[]client.Object{
				&gardencorev1beta1.SecretBinding{ObjectMeta: objectMeta("garden-demo", "b"), Quotas: quotas},
				&securityv1alpha1.CredentialsBinding{ObjectMeta: objectMeta("garden-other", "b"), Quotas: quotas},
			},
		},
		"cloud profile": {
			CloudProfiles(), &gardencorev1beta1.CloudProfile{ObjectMeta: objectMeta("", "a")},
			[]client.Object{
				shootWith(gardencorev1beta1.ShootSpec{CloudProfile: profile("CloudProfile")}),
				shootWith(gardencorev1beta1.ShootSpec{CloudProfileName: new("a")}),
				&gardencorev1beta1.NamespacedCloudProfile{
					ObjectMeta: objectMeta("garden-demo", "b"),
					Spec:       gardencorev1beta1.NamespacedCloudProfileSpec{Parent: *profile("CloudProfile")},
				},
			},
		},
		"namespaced cloud profile": {
			NamespacedCloudProfiles(), &gardencorev1beta1.NamespacedCloudProfile{
				ObjectMeta: objectMeta("garden-demo", "a"),
			},
			[]client.Object{shootWith(gardencorev1beta1.ShootSpec{CloudProfile: profile("NamespacedCloudProfile")})},
		},
		"exposure class": {
			ExposureClasses(), &gardencorev1beta1.ExposureClass{ObjectMeta: objectMeta("", "a")},
			[]client.Object{shootWith(gardencorev1beta1.ShootSpec{ExposureClassName: new("a")})},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, user := range test.users {
				stays(t, test.reconciler, test.object.DeepCopyObject().(client.Object), user)
			}
		})
	}
}

// stays tries to delete an object before and after its user is gone.
func stays(t *testing.T, r *Reconciler, object, user client.Object) {
	t.Helper()
	ctx := context.Background()
	recorder := events.NewFakeRecorder(10)
	r.Recorder = recorder
	r.Client = fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithObjects(object, user).Build()
	key := client.ObjectKeyFromObject(object)
	round := func() {
		t.Helper()
		if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
	}
	round()
	if err := r.Client.Delete(ctx, object); err != nil {
		t.Fatal(err)
	}
	round()
	if err := r.Client.Get(ctx, key, object); err != nil {
		t.Fatalf("%T is gone while %T uses it: %v", object, user, err)
	}
	if event := <-recorder.Events; !strings.Contains(event, user.GetName()) {
		t.Errorf("event = %q, want it to name the user", event)
	}
	if err := r.Client.Delete(ctx, user); err != nil {
		t.Fatal(err)
	}
	round()
	if err := r.Client.Get(ctx, key, object); !apierrors.IsNotFound(err) {
		t.Errorf("%T stays without users: %v", object, err)
	}
}

func TestOtherProfilesAreNotUsed(t *testing.T) {
	namespaced := shootWith(gardencorev1beta1.ShootSpec{
		CloudProfile: &gardencorev1beta1.CloudProfileReference{Kind: "NamespacedCloudProfile", Name: "a"},
	})
	if keys := profileOf(namespaced, "CloudProfile", ""); len(keys) > 0 {
		t.Errorf("cloud profiles = %v, want none", keys)
	}
}
