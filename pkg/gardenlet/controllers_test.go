package gardenlet

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot"
)

// A shoot is worked on when there is something new to do, of which its own status is nothing. One that was left alone
// is taken up again: nothing else would tell of what was changed in the meantime.
func TestWhichChangesOfShootsCount(t *testing.T) {
	ignored := map[string]string{gardencorev1beta1.ShootIgnore: "true"}
	for name, test := range map[string]struct {
		before, after metav1.ObjectMeta
		want          bool
	}{
		"status only":    {metav1.ObjectMeta{Generation: 1}, metav1.ObjectMeta{Generation: 1}, false},
		"new generation": {metav1.ObjectMeta{Generation: 1}, metav1.ObjectMeta{Generation: 2}, true},
		"deletion": {
			metav1.ObjectMeta{Generation: 1}, metav1.ObjectMeta{Generation: 1, DeletionTimestamp: new(metav1.Now())},
			true,
		},
		"is to be ignored": {
			metav1.ObjectMeta{Generation: 1}, metav1.ObjectMeta{Generation: 1, Annotations: ignored}, false,
		},
		"is ignored no longer": {
			metav1.ObjectMeta{Generation: 1, Annotations: ignored}, metav1.ObjectMeta{Generation: 1}, true,
		},
	} {
		update := event.UpdateEvent{
			ObjectOld: &gardencorev1beta1.Shoot{ObjectMeta: test.before},
			ObjectNew: &gardencorev1beta1.Shoot{ObjectMeta: test.after},
		}
		if got := changed(&shoot.Reconciler{}).Update(update); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// The end of an emergency stop has the shoots looked at; other changes of the Seed are no matter of theirs.
func TestWhichChangesOfTheSeedCountForShoots(t *testing.T) {
	stopped := map[string]string{gardencorev1beta1.SeedEmergencyStop: "true"}
	for name, test := range map[string]struct {
		before, after map[string]string
		want          bool
	}{
		"another change":  {nil, map[string]string{"a": "b"}, false},
		"a stop":          {nil, stopped, false},
		"the end of it":   {stopped, nil, true},
		"while it is on":  {stopped, stopped, false},
		"an end by value": {stopped, map[string]string{gardencorev1beta1.SeedEmergencyStop: "false"}, true},
		"another value":   {nil, map[string]string{gardencorev1beta1.SeedEmergencyStop: "no"}, false},
	} {
		seed := func(annotations map[string]string) *gardencorev1beta1.Seed {
			return &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
		}
		update := event.UpdateEvent{ObjectOld: seed(test.before), ObjectNew: seed(test.after)}
		if got := stopEnded(&shoot.Reconciler{}).Update(update); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
