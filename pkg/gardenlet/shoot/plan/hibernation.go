package plan

import (
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Hibernation is how awake a shoot is to be.
type Hibernation string

const (
	// Awake shoots have everything they ask for.
	Awake Hibernation = "Awake"
	// FallingAsleep shoots lose their machines, and after that their control plane.
	FallingAsleep Hibernation = "FallingAsleep"
	// Asleep shoots have no machines, and nothing of their control plane runs. What they store stays.
	Asleep Hibernation = "Asleep"
)

// planHibernation decides. That a shoot sleeps is known by a mark in the seed and not from the Shoot's status: what was
// begun since, as a waking up that was cut short, must be undone in the right order as well.
func planHibernation(shoot *gardencorev1beta1.Shoot, asleep bool) Hibernation {
	switch {
	case !HibernationWanted(shoot):
		return Awake
	case asleep:
		return Asleep
	default:
		return FallingAsleep
	}
}

// HibernationWanted says whether the user wants the shoot to sleep.
func HibernationWanted(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
}
