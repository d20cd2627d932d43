package plan

import (
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/cleanup"
)

// Deletion is what a deletion needs to know of a shoot: where it is. All else it finds in the seed, so that what
// cannot be planned any more goes away as well.
type Deletion struct {
	Identity
	// Cleanup says how the cluster is emptied before it is deleted; nil if it is not.
	Cleanup *cleanup.Plan
}

// NewDeletion decides. Errors are mistakes in the Shoot.
func NewDeletion(project string, shoot *gardencorev1beta1.Shoot) (*Deletion, error) {
	emptied, err := planCleanup(shoot)
	return &Deletion{Identity: NewIdentity(project, shoot), Cleanup: emptied}, err
}

// planCleanup decides whether and how the cluster is emptied before it is deleted; nil if not. Clusters without nodes
// have nothing outside of themselves. What their objects have brought about elsewhere, as those of a fleet in its
// members, stays.
func planCleanup(shoot *gardencorev1beta1.Shoot) (*cleanup.Plan, error) {
	if len(shoot.Spec.Provider.Workers) == 0 || gardencorev1beta1.NeedsForceDeletion(shoot) {
		return nil, nil
	}
	plan, err := cleanup.NewPlan(shoot.Annotations)
	if err != nil {
		return nil, &ConfigurationError{Err: err}
	}
	return &plan, nil
}
