package admission

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateBinding checks a reference to credentials. A binding may be for several providers, separated by commas.
func validateBinding(path *field.Path, name string, exists bool, provider, bound string) field.ErrorList {
	if !exists {
		return field.ErrorList{field.NotFound(path, name)}
	}
	if bound != "" && !slices.Contains(strings.Split(bound, ","), provider) {
		return field.ErrorList{
			field.Invalid(path, name, fmt.Sprintf("is for provider %q, the shoot is for %q", bound, provider)),
		}
	}
	return nil
}

// selects tells whether a selector selects labels. A malformed selector selects nothing.
func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(set))
}
