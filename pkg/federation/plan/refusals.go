package plan

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// refused is an error of the fleet's API, told in other words.
type refused struct {
	error
	text string
}

// Error implements error.
func (r refused) Error() string { return r.text }

// Unwrap gives what the API said.
func (r refused) Unwrap() error { return r.error }

// refusalOf says what the fleet's API has against an object, and what to do about it. Several causes are a line each.
// It is no refusal when the API could not be asked, or was at fault.
func refusalOf(err error, mapper meta.RESTMapper, object *unstructured.Unstructured) (_ error, refusal bool) {
	var told refused
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &told):
		return err, true
	case meta.IsNoMatchError(err):
		return refused{err, unserved(mapper, object)}, true
	case !errors.As(err, &status) || status.Status().Code < 400 || status.Status().Code >= 500 ||
		apierrors.IsUnauthorized(err) || apierrors.IsTooManyRequests(err):
		return err, false
	case apierrors.IsForbidden(err):
		return refused{
			err, err.Error() + "\n  A plan has the fleet check documents by a dry run, for which one must be\n  " +
				"allowed to apply them.",
		}, true
	case isNoNamespace(err):
		return refused{
			err, fmt.Sprintf("the fleet has no namespace %s; create it, have the documents create it, or name "+
				"another one (-n)", status.Status().Details.Name),
		}, true
	}
	if causes := causesOf(status.Status()); len(causes) > 0 {
		return refused{err, "the fleet refuses it:\n  " + strings.Join(causes, "\n  ")}, true
	}
	return err, true
}

// unserved says what to do about a kind that the fleet doesn't serve.
func unserved(mapper meta.RESTMapper, object *unstructured.Unstructured) string {
	text := fmt.Sprintf("the fleet serves no kind %s in %s", object.GetKind(), object.GetAPIVersion())
	gvk := object.GroupVersionKind()
	var served []string
	if mappings, err := mapper.RESTMappings(gvk.GroupKind()); err == nil {
		for _, mapping := range mappings {
			served = append(served, mapping.GroupVersionKind.GroupVersion().String())
		}
	}
	if len(served) > 0 {
		return text + ",\n  but in " + strings.Join(served, ", ") + ": correct apiVersion"
	}
	return text + ";\n  correct kind or apiVersion, or install its CustomResourceDefinition in the fleet"
}

// denial is what a ValidatingAdmissionPolicy of the fleet's own says before its message, which names the field.
var denial = regexp.MustCompile(`^ValidatingAdmissionPolicy '[^']*\.federation\.trellis\.garden' with binding '[^']*' denied request: `)

// causesOf gives one line for each cause, which begins with the field if the API names one.
func causesOf(status metav1.Status) []string {
	var causes []string
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			text := denial.ReplaceAllString(cause.Message, "")
			if cause.Field != "" && cause.Field != "<nil>" {
				text = cause.Field + ": " + text
			}
			if !slices.Contains(causes, text) && !strings.Contains(text, "some validation rules were not checked") {
				causes = append(causes, text)
			}
		}
	}
	if _, strict, found := strings.Cut(status.Message, "strict decoding error: "); found && len(causes) == 0 {
		// The API names fields that there aren't, or twice, in one line.
		causes = strings.Split(strings.ReplaceAll(strings.ReplaceAll(strict, ", unknown field ", "\nunknown field "),
			", duplicate field ", "\nduplicate field "), "\n")
	}
	return causes
}
