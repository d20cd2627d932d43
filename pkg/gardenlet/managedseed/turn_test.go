package managedseed

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
)

// aRegisteredSeed is one that another process of gardenlet has installed.
func aRegisteredSeed(uid string) *seedmanagementv1alpha1.ManagedSeed {
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid), Generation: 1},
	}
	managedSeed.Status.ObservedGeneration = 1
	managedSeed.Status.Conditions = []gardencorev1beta1.Condition{
		conditions.New(seedmanagementv1alpha1.ManagedSeedSeedRegistered, gardencorev1beta1.ConditionTrue, "R", "m"),
	}
	return managedSeed
}

func aReconciler() *Reconciler {
	r := &Reconciler{Config: &config.Configuration{}}
	r.Config.Controllers.ManagedSeed.SyncJitterPeriod = &metav1.Duration{Duration: 5 * time.Minute}
	return r
}

// After a start of gardenlet, those below it are not installed all at once, and all in time.
func TestInstallationsAreSpread(t *testing.T) {
	r, now := aReconciler(), time.Now()
	turns := map[time.Duration]bool{}
	for i := range 20 {
		managedSeed := aRegisteredSeed(fmt.Sprintf("uid-%d", i))
		wait := r.untilTurn(managedSeed, now)
		if wait < 0 || wait >= 5*time.Minute {
			t.Errorf("%s waits %s", managedSeed.Name, wait)
		}
		turns[wait.Truncate(time.Minute)] = true
		if left := r.untilTurn(managedSeed, now.Add(wait)); left != 0 {
			t.Errorf("%s waits another %s", managedSeed.Name, left)
		}
	}
	if len(turns) < 4 {
		t.Errorf("all have their turns in the minutes %v", turns)
	}
}

// What is new, changed, asked for, or was installed by this process does not wait.
func TestInstallationsThatDoNotWait(t *testing.T) {
	for name, change := range map[string]func(*Reconciler, *seedmanagementv1alpha1.ManagedSeed){
		"new": func(_ *Reconciler, m *seedmanagementv1alpha1.ManagedSeed) {
			m.Status = seedmanagementv1alpha1.ManagedSeedStatus{ObservedGeneration: 1}
		},
		"changed": func(_ *Reconciler, m *seedmanagementv1alpha1.ManagedSeed) { m.Generation = 2 },
		"asked for": func(_ *Reconciler, m *seedmanagementv1alpha1.ManagedSeed) {
			m.Annotations = map[string]string{
				gardencorev1beta1.GardenerOperation: gardencorev1beta1.GardenerOperationReconcile,
			}
		},
		"installed": func(r *Reconciler, m *seedmanagementv1alpha1.ManagedSeed) {
			r.installed.note(m.UID, "1", time.Now())
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, now, managedSeed := aReconciler(), time.Now(), aRegisteredSeed("uid-1")
			if r.untilTurn(managedSeed, now) == 0 {
				t.Fatal("it has its turn at once, and shows nothing")
			}
			change(r, managedSeed)
			if wait := r.untilTurn(managedSeed, now); wait != 0 {
				t.Errorf("it waits %s", wait)
			}
		})
	}
}
