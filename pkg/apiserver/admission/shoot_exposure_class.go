package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// ShootExposureClassName is the name of the plugin that takes an exposure class' seeds over into a shoot.
const ShootExposureClassName = "ShootExposureClass"

// shootExposureClass adds seed selector and tolerations of a shoot's exposure class to the shoot's own.
type shootExposureClass struct {
	*admission.Handler
	dependent
}

var _ admission.MutationInterface = &shootExposureClass{}

func newShootExposureClass() *shootExposureClass {
	return &shootExposureClass{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Admit implements admission.MutationInterface.
func (s *shootExposureClass) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, old, ok := written[*gardencorev1beta1.Shoot](a)
	if !ok || shoot.DeletionTimestamp != nil || (old != nil && apiequality.Semantic.DeepEqual(shoot.Spec, old.Spec)) {
		return nil
	}
	class, err := exposureClassOf(ctx, s.Reader, shoot)
	if isMissing(err) {
		return nil // refused by ResourceReferenceManager, with the field
	}
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return invalid(a, mergeExposureClass(shoot, class))
}

// exposureClassOf reads the exposure class that a shoot names; nil when it names none.
func exposureClassOf(ctx context.Context, reader Reader,
	shoot *gardencorev1beta1.Shoot) (*gardencorev1beta1.ExposureClass, error) {
	name := ptr.Deref(shoot.Spec.ExposureClassName, "")
	if name == "" {
		return nil, nil
	}
	return get[*gardencorev1beta1.ExposureClass](ctx, reader, gardencorev1beta1.Resource("exposureclasses"), "", name)
}

// mergeExposureClass adds what the class says about seeds. A shoot that wants another value of a label than its class
// can run nowhere.
func mergeExposureClass(shoot *gardencorev1beta1.Shoot, class *gardencorev1beta1.ExposureClass) field.ErrorList {
	if class == nil || class.Scheduling == nil {
		return nil
	}
	shoot.Spec.Tolerations = withTolerations(shoot.Spec.Tolerations, class.Scheduling.Tolerations)
	selector := class.Scheduling.SeedSelector
	if selector == nil {
		return nil
	}
	if shoot.Spec.SeedSelector == nil {
		shoot.Spec.SeedSelector = selector.DeepCopy()
		return nil
	}
	return mergeSeedSelector(shoot.Spec.SeedSelector, selector, class.Name, field.NewPath("spec", "seedSelector"))
}

func mergeSeedSelector(to, from *gardencorev1beta1.SeedSelector, class string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(from.MatchLabels)) {
		wanted := from.MatchLabels[key]
		if present, ok := to.MatchLabels[key]; ok && present != wanted {
			errs = append(errs, field.Invalid(path.Child("matchLabels").Key(key), present,
				fmt.Sprintf("exposure class %q selects seeds with the value %q", class, wanted)))
			continue
		}
		if to.MatchLabels == nil {
			to.MatchLabels = map[string]string{}
		}
		to.MatchLabels[key] = wanted
	}
	for _, expression := range from.MatchExpressions {
		if !slices.ContainsFunc(to.MatchExpressions,
			func(e metav1.LabelSelectorRequirement) bool { return apiequality.Semantic.DeepEqual(e, expression) }) {
			to.MatchExpressions = append(to.MatchExpressions, expression)
		}
	}
	if len(to.ProviderTypes) == 0 {
		to.ProviderTypes = slices.Clone(from.ProviderTypes)
	}
	return errs
}
