package registry

import (
	"fmt"

	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	pending = "<pending>"
	unknown = "<unknown>"
	none    = "<none>"
)

// orElse returns the value, or what is printed in its place.
func orElse(value *string, otherwise string) string {
	if value == nil || *value == "" {
		return otherwise
	}
	return *value
}

// conditionCell prints the status of a condition.
func conditionCell(conditions []gardencorev1beta1.Condition, name gardencorev1beta1.ConditionType) string {
	for _, condition := range conditions {
		if condition.Type == name {
			return string(condition.Status)
		}
	}
	return unknown
}

// operationCell prints an operation as "Create Processing (42%)".
func operationCell(operation *gardencorev1beta1.LastOperation) string {
	if operation == nil {
		return pending
	}
	return fmt.Sprintf("%s %s (%d%%)", operation.Type, operation.State, operation.Progress)
}

// hibernationCell prints where a shoot stands between awake and hibernated.
func hibernationCell(shoot *gardencorev1beta1.Shoot) any {
	wanted := shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
	switch {
	case wanted && shoot.Status.IsHibernated:
		return "Hibernated"
	case wanted:
		return "Hibernating"
	case shoot.Status.IsHibernated:
		return "Waking Up"
	}
	return "Awake"
}

// seedStatusCell prints one word about a seed.
func seedStatusCell(seed *gardencorev1beta1.Seed) any {
	if len(seed.Status.Conditions) == 0 {
		return unknown
	}
	for _, condition := range seed.Status.Conditions {
		if condition.Status != gardencorev1beta1.ConditionTrue &&
			condition.Status != gardencorev1beta1.ConditionProgressing {
			return "NotReady"
		}
	}
	return "Ready"
}
