package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// ShootTolerationRestrictionName is the name of the plugin that keeps shoots off seeds that their project may not use.
const ShootTolerationRestrictionName = "ShootTolerationRestriction"

// shootTolerationRestriction gives new shoots the tolerations of their project, and refuses those that the project has
// not been granted: otherwise a taint would keep nobody off a seed.
type shootTolerationRestriction struct {
	*admission.Handler
	dependent
}

var (
	_ admission.MutationInterface   = &shootTolerationRestriction{}
	_ admission.ValidationInterface = &shootTolerationRestriction{}
)

func newShootTolerationRestriction() *shootTolerationRestriction {
	return &shootTolerationRestriction{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Admit implements admission.MutationInterface.
func (s *shootTolerationRestriction) Admit(ctx context.Context, a admission.Attributes,
	_ admission.ObjectInterfaces) error {
	shoot, old, ok := written[*gardencorev1beta1.Shoot](a)
	if !ok || old != nil {
		return nil
	}
	project, err := projectOf(ctx, s.Reader, shoot.Namespace)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if project != nil && project.Spec.Tolerations != nil {
		shoot.Spec.Tolerations = withTolerations(shoot.Spec.Tolerations, project.Spec.Tolerations.Defaults)
	}
	return nil
}

// withTolerations adds tolerations with keys that are not tolerated yet.
func withTolerations(present, added []gardencorev1beta1.Toleration) []gardencorev1beta1.Toleration {
	for _, toleration := range added {
		if !slices.ContainsFunc(present, func(p gardencorev1beta1.Toleration) bool { return p.Key == toleration.Key }) {
			present = append(present, toleration)
		}
	}
	return present
}

// Validate implements admission.ValidationInterface.
func (s *shootTolerationRestriction) Validate(ctx context.Context, a admission.Attributes,
	_ admission.ObjectInterfaces) error {
	shoot, old, ok := changedShoot(a)
	if !ok || len(newTolerations(shoot, old)) == 0 {
		return nil
	}
	project, err := projectOf(ctx, s.Reader, shoot.Namespace)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if project == nil {
		return nil // refused by ShootValidator
	}
	class, err := exposureClassOf(ctx, s.Reader, shoot)
	if err != nil && !isMissing(err) {
		return apierrors.NewInternalError(err)
	}
	return invalid(a, validateTolerations(shoot, old, project, class))
}

// newTolerations returns the indices of tolerations that the old shoot (nil on creation) has not.
func newTolerations(shoot, old *gardencorev1beta1.Shoot) []int {
	var added []int
	for i, toleration := range shoot.Spec.Tolerations {
		if old == nil || !slices.ContainsFunc(old.Spec.Tolerations,
			func(t gardencorev1beta1.Toleration) bool { return sameToleration(t, toleration) }) {
			added = append(added, i)
		}
	}
	return added
}

func sameToleration(a, b gardencorev1beta1.Toleration) bool {
	return a.Key == b.Key && ptr.Equal(a.Value, b.Value)
}

// validateTolerations checks the tolerations that a write adds against what the project has been granted.
func validateTolerations(shoot, old *gardencorev1beta1.Shoot, project *gardencorev1beta1.Project,
	class *gardencorev1beta1.ExposureClass) field.ErrorList {
	granted := grantedTolerations(shoot, project, class)
	var errs field.ErrorList
	for _, i := range newTolerations(shoot, old) {
		toleration := shoot.Spec.Tolerations[i]
		if slices.ContainsFunc(granted, func(g gardencorev1beta1.Toleration) bool {
			return g.Key == toleration.Key && (g.Value == nil || ptr.Equal(g.Value, toleration.Value))
		}) {
			continue
		}
		errs = append(errs, field.Forbidden(field.NewPath("spec", "tolerations").Index(i),
			fmt.Sprintf("%s is not among what project %q may tolerate (%s): whoever may use the custom verb %s can "+
				"add it to the project's spec.tolerations.whitelist",
				describeToleration(toleration), project.Name, describeTolerations(granted),
				verbModifyTolerationsWhitelist)))
	}
	return errs
}

// grantedTolerations returns what the shoots of a project may tolerate.
func grantedTolerations(shoot *gardencorev1beta1.Shoot, project *gardencorev1beta1.Project,
	class *gardencorev1beta1.ExposureClass) []gardencorev1beta1.Toleration {
	var granted []gardencorev1beta1.Toleration
	if tolerations := project.Spec.Tolerations; tolerations != nil {
		granted = slices.Concat(tolerations.Whitelist, tolerations.Defaults)
	}
	if class != nil && class.Scheduling != nil {
		granted = append(granted, class.Scheduling.Tolerations...)
	}
	if shoot.Namespace == gardencorev1beta1.GardenNamespace {
		granted = append(granted, gardencorev1beta1.Toleration{Key: gardencorev1beta1.SeedTaintProtected})
	}
	return granted
}

func describeToleration(toleration gardencorev1beta1.Toleration) string {
	if toleration.Value == nil {
		return toleration.Key
	}
	return toleration.Key + "=" + *toleration.Value
}

func describeTolerations(tolerations []gardencorev1beta1.Toleration) string {
	if len(tolerations) == 0 {
		return "nothing"
	}
	var described []string
	for _, toleration := range tolerations {
		described = append(described, describeToleration(toleration))
	}
	return strings.Join(described, ", ")
}
