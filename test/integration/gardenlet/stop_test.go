package gardenlet

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/conditions"
)

// testEmergencyStop stops the seed in the middle of a creation, which goes on when the stop ends.
func testEmergencyStop(t *testing.T) {
	shoot := example(t, "shoot-fleet")
	shoot.Name = "stopped"
	shoot.Spec.DNS = nil
	create(t, shoot)
	eventually(t, func() error {
		if err := get(shoot); err != nil {
			return err
		}
		if shoot.Status.LastOperation == nil {
			return fmt.Errorf("not begun")
		}
		return nil
	})
	stopSeed(t, true)
	stopSeed(t, false)
	succeeded(t, shoot)
	if last := shoot.Status.LastOperation; last.Type != gardencorev1beta1.LastOperationTypeCreate ||
		len(shoot.Status.LastErrors) > 0 {
		t.Errorf("to be cut off is no failure: %+v, %+v", last, shoot.Status.LastErrors)
	}
	deleted(t, shoot)
}

// stopSeed begins or ends the emergency stop of the seed, and waits until gardenlet knows it.
func stopSeed(t *testing.T, stopped bool) {
	t.Helper()
	value := "null"
	if stopped {
		value = `"true"`
	}
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	patch := client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, gardencorev1beta1.SeedEmergencyStop, value))
	if err := c.Patch(context.Background(), seed, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if err := get(seed); err != nil {
			return err
		}
		if told := conditions.IsTrue(seed.Status.Conditions,
			gardencorev1beta1.SeedEmergencyStopShootReconciliations); told != stopped {
			return fmt.Errorf("the condition tells of a stop: %t", told)
		}
		return nil
	})
}
