// Package conditions reads and writes conditions of the garden's form: four statuses, a transition and an update time.
// It is the one place where their times are kept right.
package conditions

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// New returns a condition without times; Set fills them in.
func New(t gardencorev1beta1.ConditionType, status gardencorev1beta1.ConditionStatus, reason, message string,
	codes ...gardencorev1beta1.ErrorCode) gardencorev1beta1.Condition {
	return gardencorev1beta1.Condition{Type: t, Status: status, Reason: reason, Message: message, Codes: codes}
}

// Get returns the condition of a type, nil if there is none.
func Get(list []gardencorev1beta1.Condition, t gardencorev1beta1.ConditionType) *gardencorev1beta1.Condition {
	for i := range list {
		if list[i].Type == t {
			return &list[i]
		}
	}
	return nil
}

// IsTrue says whether the condition of a type exists and is True.
func IsTrue(list []gardencorev1beta1.Condition, t gardencorev1beta1.ConditionType) bool {
	c := Get(list, t)
	return c != nil && c.Status == gardencorev1beta1.ConditionTrue
}

// Set returns list with the condition added or replaced. The transition time moves only with the status, the update
// time only when something changed; the list passed in is left alone.
func Set(list []gardencorev1beta1.Condition, c gardencorev1beta1.Condition,
	now time.Time) []gardencorev1beta1.Condition {
	stamp := metav1.NewTime(now)
	c.LastTransitionTime, c.LastUpdateTime = stamp, stamp
	list = slices.Clone(list)
	old := Get(list, c.Type)
	if old == nil {
		return append(list, c)
	}
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
		if old.Reason == c.Reason && old.Message == c.Message && slices.Equal(old.Codes, c.Codes) {
			c.LastUpdateTime = old.LastUpdateTime
		}
	}
	*old = c
	return list
}

// Remove returns list without the conditions of the types.
func Remove(list []gardencorev1beta1.Condition,
	types ...gardencorev1beta1.ConditionType) []gardencorev1beta1.Condition {
	return slices.DeleteFunc(slices.Clone(list),
		func(c gardencorev1beta1.Condition) bool { return slices.Contains(types, c.Type) })
}
