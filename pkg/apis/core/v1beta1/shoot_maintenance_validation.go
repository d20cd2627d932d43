package v1beta1

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-garden/trellis/pkg/apis/cron"
)

const (
	minRotationPeriod = 30 * time.Minute
	maxRotationPeriod = 90 * 24 * time.Hour
	// maxSchedules is the most hibernation schedules of a shoot.
	maxSchedules = 100
	// maxCronLength is the most characters of a cron expression.
	maxCronLength = 256
	// maxLocationLength is the most characters of the name of a time zone.
	maxLocationLength = 64
)

func validateMaintenance(maintenance *Maintenance, path *field.Path) field.ErrorList {
	if maintenance == nil {
		return nil
	}
	errs := validateTimeWindow(maintenance.TimeWindow, path.Child("timeWindow"))
	if maintenance.AutoRotation == nil || maintenance.AutoRotation.Credentials == nil {
		return errs
	}
	credentials, at := maintenance.AutoRotation.Credentials, path.Child("autoRotation", "credentials")
	errs = append(errs, validateRotation(credentials.SSHKeypair, at.Child("sshKeypair"))...)
	errs = append(errs, validateRotation(credentials.Observability, at.Child("observability"))...)
	return append(errs, validateRotation(credentials.ETCDEncryptionKey, at.Child("etcdEncryptionKey"))...)
}

func validateTimeWindow(window *MaintenanceTimeWindow, path *field.Path) field.ErrorList {
	if window == nil {
		return nil
	}
	errs := validateTimeOfDay(window.Begin, path.Child("begin"))
	errs = append(errs, validateTimeOfDay(window.End, path.Child("end"))...)
	if _, duration, err := window.Parse(); err == nil &&
		(duration < MinMaintenanceWindow || duration > MaxMaintenanceWindow) {
		errs = append(errs, field.Invalid(path, window.Begin+" to "+window.End,
			fmt.Sprintf("must be between %s and %s long", MinMaintenanceWindow, MaxMaintenanceWindow)))
	}
	return errs
}

func validateTimeOfDay(value string, path *field.Path) field.ErrorList {
	if _, err := sinceMidnight(value); err != nil {
		return field.ErrorList{field.Invalid(path, value, "must be a time such as 220000+0100")}
	}
	return nil
}

func validateRotation(rotation *MaintenanceRotationConfig, path *field.Path) field.ErrorList {
	if rotation == nil || rotation.RotationPeriod == nil || rotation.RotationPeriod.Duration == 0 {
		return nil
	}
	return validateDuration(rotation.RotationPeriod, minRotationPeriod, maxRotationPeriod, path.Child("rotationPeriod"))
}

func validateHibernation(hibernation *Hibernation, path *field.Path) field.ErrorList {
	if hibernation == nil {
		return nil
	}
	schedules := path.Child("schedules")
	if errs := validateCount(len(hibernation.Schedules), maxSchedules, schedules); len(errs) > 0 {
		return errs
	}
	errs := validateUnique(hibernation.Schedules, func(s HibernationSchedule) string {
		return fmt.Sprintf("start %q, end %q, location %q", deref(s.Start), deref(s.End), deref(s.Location))
	}, schedules.Index)
	for i, schedule := range hibernation.Schedules {
		at := schedules.Index(i)
		if deref(schedule.Start) == "" && deref(schedule.End) == "" {
			errs = append(errs, field.Required(at, "start or end has to be set"))
		}
		errs = append(errs, validateCron(schedule.Start, at.Child("start"))...)
		errs = append(errs, validateCron(schedule.End, at.Child("end"))...)
		errs = append(errs, validateLocation(schedule.Location, at.Child("location"))...)
	}
	return errs
}

func validateLocation(location *string, path *field.Path) field.ErrorList {
	if location == nil {
		return nil
	}
	if len(*location) > maxLocationLength {
		return field.ErrorList{field.TooLong(path, *location, maxLocationLength)}
	}
	// Local would be that of whichever machine the controllers run on.
	if _, err := time.LoadLocation(*location); err != nil || *location == time.Local.String() {
		return field.ErrorList{field.Invalid(path, *location, "must be a time zone such as Europe/Berlin")}
	}
	return nil
}

// validateHibernationUpdate refuses to put a cluster to sleep that could not wake up again, or in the middle of a
// rotation.
func validateHibernationUpdate(shoot, old *Shoot, path *field.Path) field.ErrorList {
	if !hibernationWanted(&shoot.Spec) || hibernationWanted(&old.Spec) {
		return nil
	}
	at := path.Child("enabled")
	var errs field.ErrorList
	for _, constraint := range old.Status.Constraints {
		if constraint.Type == ShootHibernationPossible && constraint.Status == ConditionFalse {
			errs = append(errs, field.Forbidden(at,
				"constraint "+string(ShootHibernationPossible)+" is False: "+constraint.Message))
		}
	}
	rotation := rotationOf(old)
	for _, one := range []struct {
		what  string
		phase CredentialsRotationPhase
	}{
		{"the key for encryption at rest", deref(rotation.ETCDEncryptionKey).Phase},
		{"the key for service account tokens", deref(rotation.ServiceAccountKey).Phase},
	} {
		if one.phase != "" && one.phase != RotationPrepared && one.phase != RotationCompleted {
			errs = append(errs, field.Forbidden(at,
				fmt.Sprintf("rotation of %s is %s; wait until it is Prepared or Completed", one.what, one.phase)))
		}
	}
	return errs
}

// hibernationWanted tells whether a cluster is to sleep.
func hibernationWanted(spec *ShootSpec) bool { return deref(deref(spec.Hibernation).Enabled) }

// sleeps tells whether a cluster sleeps, falls asleep or wakes up.
func sleeps(shoot *Shoot) bool { return shoot.Status.IsHibernated || hibernationWanted(&shoot.Spec) }

// rotationOf returns how far rotations are; nothing when there never was one.
func rotationOf(shoot *Shoot) ShootCredentialsRotation {
	return deref(deref(shoot.Status.Credentials).Rotation)
}

// validateCron accepts what an ordinary cron accepts: five fields of values, ranges, lists and steps.
func validateCron(expression *string, path *field.Path) field.ErrorList {
	if expression == nil || *expression == "" {
		return nil
	}
	if len(*expression) > maxCronLength {
		return field.ErrorList{field.TooLong(path, *expression, maxCronLength)}
	}
	if _, err := cron.Parse(*expression); err != nil {
		return field.ErrorList{field.Invalid(path, *expression, err.Error())}
	}
	return nil
}
