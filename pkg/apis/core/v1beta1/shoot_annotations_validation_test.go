package v1beta1

import "testing"

func withSyncPeriod(shoot *Shoot, period string) *Shoot {
	shoot.Annotations = map[string]string{ShootSyncPeriod: period}
	return shoot
}

// What gardenlet would pass over in silence is refused, for a new Shoot and for one that is there.
func TestSyncPeriod(t *testing.T) {
	const path = "metadata.annotations[shoot.gardener.cloud/sync-period]"
	for period, isRight := range map[string]bool{
		"2h30m": true, "1ns": true, "soon": false, "": false, "3600": false, "0s": false, "-1h": false,
	} {
		refusedAt, why := path, "must be a duration above zero"
		if isRight {
			refusedAt, why = "", ""
		}
		t.Run(period, func(t *testing.T) {
			expectError(t, ValidateNewShoot(withSyncPeriod(aShoot(), period)), refusedAt, why)
			old := aCreatedShoot()
			expectError(t, ValidateShootUpdate(withSyncPeriod(old.DeepCopy(), period), old), refusedAt, why)
			expectError(t, ValidateShootUpdate(old, withSyncPeriod(old.DeepCopy(), period)), "", "")
		})
	}
}

// A period that was accepted before it was checked stays, until it is changed.
func TestSyncPeriodFromBeforeItWasChecked(t *testing.T) {
	old := withSyncPeriod(aCreatedShoot(), "soon")
	shoot := old.DeepCopy()
	shoot.Spec.Purpose = new(ShootPurposeTesting)
	shoot.Annotations["example.com/mine"] = "a"
	expectError(t, ValidateShootUpdate(shoot, old), "", "")
	expectError(t, ValidateShootUpdate(withSyncPeriod(shoot, "sooner"), old),
		"metadata.annotations[shoot.gardener.cloud/sync-period]", `"sooner"`)
}
