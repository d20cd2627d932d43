package shoot

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
)

// Nothing is done about the shoots of a stopped seed, whether they are to be made or to be deleted.
func TestShootsOfAStoppedSeedAreLeftAlone(t *testing.T) {
	for name, shoot := range map[string]*gardencorev1beta1.Shoot{
		"a new one": {},
		"a deleted one": {
			ObjectMeta: metav1.ObjectMeta{
				DeletionTimestamp: new(metav1.Now()), Finalizers: []string{gardencorev1beta1.GardenerName},
			},
		},
	} {
		shoot.Namespace, shoot.Name, shoot.Spec.SeedName = "garden-p", "s", new("here")
		seed := &gardencorev1beta1.Seed{
			ObjectMeta: metav1.ObjectMeta{
				Name: "here", Annotations: map[string]string{gardencorev1beta1.SeedEmergencyStop: "true"},
			},
		}
		garden := fake.NewClientBuilder().
			WithScheme(apis.GardenScheme()).WithStatusSubresource(shoot).WithObjects(shoot, seed).Build()
		r := &Reconciler{
			Garden: garden, Config: &config.Configuration{
				SeedConfig: &config.SeedConfig{ObjectMeta: metav1.ObjectMeta{Name: "here"}},
			},
		}
		key := client.ObjectKeyFromObject(shoot)
		before, after := &gardencorev1beta1.Shoot{}, &gardencorev1beta1.Shoot{}
		if err := garden.Get(t.Context(), key, before); err != nil {
			t.Fatal(err)
		}
		if result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil ||
			result != (ctrl.Result{}) {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
		if err := garden.Get(t.Context(), key, after); err != nil || after.ResourceVersion != before.ResourceVersion {
			t.Errorf("%s was changed (%v)", name, err)
		}
	}
}

// What is cut off by a stop has not failed, and waits for the end of the stop.
func TestStopEndsWhatRuns(t *testing.T) {
	r := &Reconciler{}
	ctx, end := r.begin(t.Context(),
		&gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-p", Name: "s"}})
	defer end()
	r.Stop()
	if cause := context.Cause(ctx); !errors.Is(cause, errStopped) {
		t.Fatalf("ended by %v", cause)
	}
	if result, err := r.failed(ctx, nil,
		apierrors.NewConflict(gardencorev1beta1.Resource("shoots"), "s", nil)); err != nil ||
		result != (ctrl.Result{}) {
		t.Errorf("got %+v, %v", result, err)
	}
}

// A flow ends when the shoot is another seed's, whatever generation it works for.
func TestLeavingEndsWhatRuns(t *testing.T) {
	r := &Reconciler{}
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-p", Name: "s", Generation: 7}}
	ctx, end := r.begin(t.Context(), shoot)
	defer end()
	r.Leave(&gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-p", Name: "another"}})
	if ctx.Err() != nil {
		t.Fatal("the flow of another shoot has ended")
	}
	r.Leave(shoot)
	if cause := context.Cause(ctx); !errors.Is(cause, errSuperseded) {
		t.Errorf("ended by %v", cause)
	}
}

// What cannot be restored has not begun: the Shoot may still be bound to another seed.
func TestRestoreWithoutState(t *testing.T) {
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-p", Name: "s"}}
	r := &Reconciler{Garden: fake.NewClientBuilder().WithScheme(apis.GardenScheme()).Build()}
	identity := plan.Identity{ShootNamespace: "garden-p", ShootName: "s"}
	if restored, err := r.readState(t.Context(), identity, shoot); err != nil || restored != nil {
		t.Errorf("a shoot that is not restored: %v, %v", restored, err)
	}
	shoot.Status.BeginRestore("one", "two", metav1.Now())
	if _, err := r.readState(t.Context(), identity, shoot); err == nil {
		t.Error("it is not told that there is no state")
	}
}
