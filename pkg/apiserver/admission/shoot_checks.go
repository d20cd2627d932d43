package admission

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// validateBinding checks a reference to credentials. A binding may be for several providers, separated by commas.
func validateBinding(path *field.Path, name string, exists bool, provider, bound string) field.ErrorList {
	if !exists {
		return field.ErrorList{field.NotFound(path, name)}
	}
	if bound != "" && !slices.Contains(strings.Split(bound, ","), provider) {
		return field.ErrorList{field.Invalid(path, name, fmt.Sprintf("is for provider %q, the shoot is for %q", bound, provider))}
	}
	return nil
}

// validateSeedFor checks that a seed may take the shoot.
func validateSeedFor(shoot *corev1beta1.Shoot, seed *corev1beta1.Seed, path *field.Path) field.ErrorList {
	if seed.DeletionTimestamp != nil {
		return field.ErrorList{field.Invalid(path, seed.Name, "the seed is being deleted")}
	}
	var errs field.ErrorList
	for _, taint := range seed.Spec.Taints {
		if !tolerates(shoot.Spec.Tolerations, taint) {
			errs = append(errs, field.Invalid(path, seed.Name, fmt.Sprintf("the shoot does not tolerate the seed's taint %s", taint.Key)))
		}
	}
	if selector := shoot.Spec.SeedSelector; selector != nil && !selects(&selector.LabelSelector, seed.Labels) {
		errs = append(errs, field.Invalid(path, seed.Name, "spec.seedSelector does not select the seed"))
	}
	return errs
}

func tolerates(tolerations []corev1beta1.Toleration, taint corev1beta1.SeedTaint) bool {
	return slices.ContainsFunc(tolerations, func(toleration corev1beta1.Toleration) bool {
		return toleration.Key == taint.Key && (toleration.Value == nil || ptr.Equal(toleration.Value, taint.Value))
	})
}

func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(set))
}
