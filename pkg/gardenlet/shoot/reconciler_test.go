package shoot

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/taskgraph"
	"github.com/trellis-garden/trellis/pkg/operationgraph"
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

// TestAttackTryWithoutTasks: what cannot be planned has no tasks, and is not told with those of the try before.
func TestAttackTryWithoutTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden-p", Name: "s", UID: "u1", Generation: 1,
			Finalizers: []string{gardencorev1beta1.GardenerName},
		}}
		shoot.Spec.SeedName = new("here")
		before := operationgraph.ConfigMap(shoot)
		before.Data = map[string]string{operationgraph.DataKey: tasksOfBefore(t)}
		garden := fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithStatusSubresource(shoot).WithObjects(
			shoot, before, &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "here"}}).Build()
		r := &Reconciler{Garden: garden, Graphs: &taskgraph.Writer{Garden: garden}, Config: &config.Configuration{
			SeedConfig: &config.SeedConfig{ObjectMeta: metav1.ObjectMeta{Name: "here"}},
		}}
		r.Config.Controllers.Shoot.RetryDuration = &metav1.Duration{Duration: time.Hour}
		key := client.ObjectKeyFromObject(shoot)
		_, cause := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		if cause == nil {
			t.Fatal("a shoot without a cloud profile is reconciled")
		}
		synctest.Wait()
		now, told := &gardencorev1beta1.Shoot{}, &corev1.ConfigMap{}
		if err := errors.Join(garden.Get(t.Context(), key, now),
			garden.Get(t.Context(), client.ObjectKeyFromObject(before), told)); err != nil {
			t.Fatal(err)
		}
		g, err := operationgraph.Read(told, now)
		if err != nil || len(g.Tasks) > 0 || !strings.HasPrefix(cause.Error(), g.Error) || !g.IsPresent(&now.Status) {
			t.Errorf("after %v it is told %+v, %v", cause, g, err)
		}
	})
}

// tasksOfBefore is the graph of a try that has failed.
func tasksOfBefore(t *testing.T) string {
	t.Helper()
	text, err := operationgraph.Encode(operationgraph.Graph{
		Type: "Create", Generation: 1, Started: time.Now(), Ended: time.Now(),
		Tasks: []operationgraph.Task{{Name: "Deploying etcd", State: operationgraph.Failed, Error: "no"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
