package admission

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pathRule is about the JSON pointers of overriders. It names those that break it by their place, which schemas can do
// as well, but schemas bound what a rule about lists in lists may cost, and would have to bound the lists.
type pathRule struct {
	// variable holds what is wrong, as text; empty if nothing is.
	variable string
	// in are the fields that the rule is about.
	in []pathField
	// check is an expression about a pointer; and about o, what it is a field of.
	check   func(pointer string) string
	message string
}

// pathField is a field of the entries of a list of overriders or, if below is set, of the entries of a list in those.
type pathField struct{ list, below, name string }

const badPointer = "a path must be a JSON pointer: empty, or steps that begin with / each, in which ~ is written " +
	"~0, and / is written ~1"

var (
	contentPaths = []pathField{
		{list: "plaintext", name: "path"}, {list: "imageOverrider", name: "predicate.path"},
		{list: "fieldOverrider", name: "fieldPath"},
	}
	subPaths = []pathField{
		{list: "fieldOverrider", below: "json", name: "subPath"},
		{list: "fieldOverrider", below: "yaml", name: "subPath"},
	}
	pathRules = []pathRule{
		{"badPointers", append(subPaths, contentPaths...), isPointer, badPointer},
		{"badPaths", contentPaths, isContentPath, badPath},
		{"badRemovals", subPaths, func(pointer string) string {
			return "o.operator != 'remove' || " + pointer + " != ''"
		},
			"operator remove needs a subPath: the document as a whole is not removed"},
	}
)

// isPointer tells whether a string is a JSON pointer (RFC 6901).
func isPointer(text string) string {
	return text + ".matches('^(/([^~/]|~[01])*)*$')"
}

// withPathRules adds the rules about paths to a policy. They come first: the others may rely on them.
func withPathRules(
	spec admissionregistrationv1.ValidatingAdmissionPolicySpec) admissionregistrationv1.ValidatingAdmissionPolicySpec {
	var validations []admissionregistrationv1.Validation
	for _, r := range pathRules {
		spec.Variables = append(spec.Variables,
			admissionregistrationv1.Variable{Name: r.variable, Expression: r.offenders()})
		validations = append(validations, admissionregistrationv1.Validation{
			Expression: "variables." + r.variable + " == ''",
			// The API server shows this where it does not show the other: if that is too long or has line breaks.
			Message:           "overriders: " + r.message,
			MessageExpression: fmt.Sprintf("variables.%s + %q", r.variable, ": "+r.message),
			Reason:            new(metav1.StatusReasonInvalid),
		})
	}
	spec.Validations = append(validations, spec.Validations...)
	return spec
}

// offenders is an expression for the fields that break the rule, each with its value, separated by commas.
func (r pathRule) offenders() string {
	var lists []string
	for _, f := range r.in {
		lists = append(lists, f.offenders(r.check))
	}
	return "variables.rules.transformList(i, r, has(r.overriders), [" + strings.Join(lists, ", ") +
		"].filter(t, t != '').join(', '))" +
		".filter(t, t != '').join(', ')"
}

func (f pathField) offenders(check func(string) string) string {
	const prefix = "(i < size(variables.rules) - 1 ? 'spec.overrideRules[' + string(i) + ']' : 'spec') + '.overriders."
	entry := func(list, at, present, pointer string) string {
		return fmt.Sprintf("%s.transformList(%s, o, %s!(%s), ", list, at, present, check("o."+pointer))
	}
	quoted := fmt.Sprintf(" + ' \"' + o.%s + '\"').join(', ')", f.name)
	if f.below == "" {
		present := ""
		if parent, _, nested := strings.Cut(f.name, "."); nested {
			present = "has(o." + parent + ") && "
		}
		return entry(orEmptyList("r.overriders", f.list), "j", present, f.name) +
			fmt.Sprintf("%s%s[' + string(j) + '].%s'", prefix, f.list, f.name) + quoted
	}
	return orEmptyList("r.overriders", f.list) + ".transformList(j, e, " +
		entry(orEmptyList("e", f.below), "k", "", f.name) +
		fmt.Sprintf("%s%s[' + string(j) + '].%s[' + string(k) + '].%s'", prefix, f.list, f.below, f.name) + quoted +
		").filter(t, t != '').join(', ')"
}
