package conditions

import (
	"slices"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Values of the label shoot.gardener.cloud/status.
const (
	Healthy     = "healthy"
	Progressing = "progressing"
	Unhealthy   = "unhealthy"
	Unknown     = "unknown"
)

// OfShoot sums up a Shoot in one word: an error or a failing condition makes it unhealthy, one that could not be
// checked unknown; it is progressing while it recovers or is being worked on, and healthy otherwise.
func OfShoot(shoot *gardencorev1beta1.Shoot) string {
	has := func(status gardencorev1beta1.ConditionStatus) bool {
		return slices.ContainsFunc(shoot.Status.Conditions,
			func(c gardencorev1beta1.Condition) bool { return c.Status == status })
	}
	last := shoot.Status.LastOperation
	switch {
	case len(shoot.Status.LastErrors) > 0, has(gardencorev1beta1.ConditionFalse):
		return Unhealthy
	case has(gardencorev1beta1.ConditionUnknown):
		return Unknown
	case has(gardencorev1beta1.ConditionProgressing), last == nil,
		last.State != gardencorev1beta1.LastOperationStateSucceeded:
		return Progressing
	}
	return Healthy
}
