package admission

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserver/seedauthorizer"
)

// validateStatusOfShoot refuses a status that would make the control plane another one's: from the technical ID follow
// the namespace in the seed and, with the UID, the place of backups; from the seed's name follow the rights of a
// gardenlet.
func (s *shootValidator) validateStatusOfShoot(ctx context.Context, a admission.Attributes) error {
	shoot, isShoot := a.GetObject().(*gardencorev1beta1.Shoot)
	old, hasOld := a.GetOldObject().(*gardencorev1beta1.Shoot)
	if !isShoot || !hasOld {
		return nil
	}
	_, isSeed := seedauthorizer.IdentityOf(a.GetUserInfo())
	errs := validateStatusIdentity(shoot, old, isSeed)
	if shoot.Status.TechnicalID == old.Status.TechnicalID {
		return invalid(a, errs)
	}
	project, err := projectOf(ctx, s.Reader, shoot.Namespace)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return invalid(a, append(errs, validateTechnicalID(shoot, project)...))
}

// validateStatusIdentity checks the UID, and where a seed says that the control plane is.
func validateStatusIdentity(shoot, old *gardencorev1beta1.Shoot, bySeed bool) field.ErrorList {
	path := field.NewPath("status")
	var errs field.ErrorList
	if uid := shoot.Status.UID; uid != old.Status.UID && uid != shoot.UID {
		errs = append(errs, field.Invalid(path.Child("uid"), uid, fmt.Sprintf("must be metadata.uid, %s", shoot.UID)))
	}
	name := shoot.Status.SeedName
	if bySeed && name != nil && !ptr.Equal(name, old.Status.SeedName) && !ptr.Equal(name, shoot.Spec.SeedName) {
		errs = append(errs, field.Invalid(path.Child("seedName"), *name,
			fmt.Sprintf("must be spec.seedName, %q", ptr.Deref(shoot.Spec.SeedName, ""))))
	}
	return errs
}

// validateTechnicalID checks a new technical ID against the names of the project, which is nil if there is none, and
// the shoot.
func validateTechnicalID(shoot *gardencorev1beta1.Shoot, project *gardencorev1beta1.Project) field.ErrorList {
	path, id := field.NewPath("status", "technicalID"), shoot.Status.TechnicalID
	if project == nil {
		return field.ErrorList{
			field.Invalid(path, id, fmt.Sprintf("namespace %q belongs to no project", shoot.Namespace)),
		}
	}
	if wanted := gardencorev1beta1.TechnicalID(project.Name, shoot.Name); id != wanted {
		return field.ErrorList{field.Invalid(path, id, fmt.Sprintf("must be %q", wanted))}
	}
	return nil
}
