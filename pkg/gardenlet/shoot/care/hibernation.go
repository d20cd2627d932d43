package care

import (
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/conditions"
)

// What is told of shoots that sleep.
const (
	reasonNotChecked           = "ConditionNotChecked"
	reasonConstraintNotChecked = "ConstraintNotChecked"
	messageHibernated          = "Shoot cluster has been hibernated."
)

// asleepConditions are those of a shoot that sleeps, falls asleep or wakes up: all is as it should be, so nothing is
// checked.
func asleepConditions(workerless, backedUp bool) []gardencorev1beta1.Condition {
	types := []gardencorev1beta1.ConditionType{
		gardencorev1beta1.ShootAPIServerAvailable, gardencorev1beta1.ShootControlPlaneHealthy,
		gardencorev1beta1.ShootSystemComponentsHealthy,
	}
	if !workerless {
		types = append(types, gardencorev1beta1.ShootEveryNodeReady)
	}
	if backedUp {
		types = append(types, gardencorev1beta1.ShootEtcdBackupReady)
	}
	return allTrue(types, reasonNotChecked)
}

// asleepConstraints are the constraints of such a shoot.
func asleepConstraints() []gardencorev1beta1.Condition {
	return allTrue([]gardencorev1beta1.ConditionType{
		gardencorev1beta1.ShootHibernationPossible, gardencorev1beta1.ShootMaintenancePreconditionsSatisfied,
		gardencorev1beta1.ShootEtcdSpaceSufficient,
	}, reasonConstraintNotChecked)
}

// allTrue are conditions that are True because the shoot is hibernated.
func allTrue(types []gardencorev1beta1.ConditionType, reason string) []gardencorev1beta1.Condition {
	var list []gardencorev1beta1.Condition
	for _, t := range types {
		list = append(list, conditions.New(t, gardencorev1beta1.ConditionTrue, reason, messageHibernated))
	}
	return list
}
