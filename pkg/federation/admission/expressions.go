package admission

import "fmt"

// Expressions of the Common Expression Language that several rules are made of. Arguments are expressions themselves.

// isLabelKey tells whether a string may be the key of a label.
func isLabelKey(text string) string {
	return "!format.qualifiedName().validate(" + text + ").hasValue()"
}

// isLabelValue tells whether a string may be the value of a label.
func isLabelValue(text string) string {
	return "!format.labelValue().validate(" + text + ").hasValue()"
}

// isDNSLabel tells whether a string may be the name of a cluster, but for its length.
func isDNSLabel(text string) string {
	return "!format.dns1123Label().validate(" + text + ").hasValue()"
}

// isOwnKey tells whether the key of a label or annotation is the fleet's own, as identity.IsOwn does.
func isOwnKey(key string) string {
	return key + ".matches('^([^/]*[.])?(karmada[.]io|trellis[.]garden)/')"
}

// isContentPath tells whether a JSON pointer leads to what an object holds, and not to what it is.
func isContentPath(path string) string {
	return fmt.Sprintf("[%[1]s.split('/')].all(t, size(t) > 1 && !(t[1] in ['apiVersion', 'kind']) && (t[1] != "+
		"'metadata' || size(t) > 2 && t[2] in ['labels', 'annotations'] && "+
		"(size(t) == 3 || !%[2]s)))", path, isOwnKey("t[3].replace('~1', '/')"))
}

// orEmptyList gives a list also if the field isn't there.
func orEmptyList(parent, field string) string {
	return fmt.Sprintf("(has(%[1]s.%[2]s) ? %[1]s.%[2]s : [])", parent, field)
}

// What a label selector may hold. Each object of its kind is compared with all of it, and these expressions look at all
// of it too: one that is larger would exhaust what the API server spends on them, which it doesn't tell in words that
// help.
const (
	maxLabels      = 1000
	maxExpressions = 100
	maxValues      = 1000
)

// selectorHolds tells whether the label selector of an object, if it has one, can be understood, and is small enough.
func selectorHolds(object string) string {
	s := object + ".labelSelector"
	labels :=
		fmt.Sprintf("(!has(%[1]s.matchLabels) || size(%[1]s.matchLabels) <= %[4]d && %[1]s.matchLabels.all(k, %[2]s "+
			"&& %[3]s))",
			s, isLabelKey("k"), isLabelValue(s+".matchLabels[k]"), maxLabels)
	values :=
		fmt.Sprintf("(e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 && size(e.values) <= %d "+
			"&& e.values.all(v, %s)"+
			" : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || size(e.values) == 0))", maxValues,
			isLabelValue("v"))
	expressions := fmt.Sprintf("size(%[1]s) <= %[4]d && %[1]s.all(e, %[2]s && %[3]s)",
		orEmptyList(s, "matchExpressions"), isLabelKey("e.key"), values, maxExpressions)
	return fmt.Sprintf("(!has(%s) || (%s && %s))", s, labels, expressions)
}

// badSelector is what is said of a selector that cannot be understood.
const badSelector = "a labelSelector cannot be understood or is too large: keys and values must be those of labels, " +
	"operators In, NotIn (with values), " +
	"Exists, DoesNotExist (without); at most 1000 labels, 100 expressions and 1000 values of each"
