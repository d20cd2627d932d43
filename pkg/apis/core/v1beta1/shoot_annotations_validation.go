package v1beta1

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateSyncPeriod checks a period that is newly asked for. One that was there before this was checked does not keep
// a Shoot from being changed: gardenlet passes over what it cannot read. The old Shoot is nil on creation.
func validateSyncPeriod(shoot, old *Shoot) field.ErrorList {
	value, isSet := shoot.Annotations[ShootSyncPeriod]
	if !isSet {
		return nil
	}
	if old != nil {
		if before, wasSet := old.Annotations[ShootSyncPeriod]; wasSet && before == value {
			return nil
		}
	}
	if period, err := time.ParseDuration(value); err == nil && period > 0 {
		return nil
	}
	return field.ErrorList{
		field.Invalid(field.NewPath("metadata", "annotations").Key(ShootSyncPeriod), value,
			"must be a duration above zero, such as 2h30m; correct it or remove the annotation"),
	}
}
