package overrides

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
)

// absentError is a step of a path that there is not.
type absentError struct {
	at   string
	last bool
}

func (e absentError) Error() string { return fmt.Sprintf("%q does not exist in the object", e.at) }

// advice tells how an operation whose path has such a step may be mended.
func (e absentError) advice(operator policyv1alpha1.OverriderOperator) string {
	switch {
	case operator == policyv1alpha1.OverriderOpRemove:
		return "there is nothing to remove: leave the entry out, or give a path that exists"
	case operator == policyv1alpha1.OverriderOpReplace && e.last:
		return "give a path that exists, or use operator add"
	case operator == policyv1alpha1.OverriderOpAdd:
		return fmt.Sprintf("operator add makes only the last step of a path: add %q before, or give a path that exists",
			e.at)
	}
	return "give a path that exists"
}

// patch applies one operation of a JSON patch (RFC 6902) to a decoded document and returns it. The document may be
// changed in place. A path that the operation needs but the document lacks is an error, which says what to do.
func patch(document any, pointer string, operator policyv1alpha1.OverriderOperator, value any) (any, error) {
	result, err := patchPointer(document, pointer, operator, value)
	var absent absentError
	if errors.As(err, &absent) {
		err = fmt.Errorf("%w; %s", err, absent.advice(operator))
	}
	return result, err
}

func patchPointer(document any, pointer string, operator policyv1alpha1.OverriderOperator, value any) (any, error) {
	tokens, err := split(pointer)
	if err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		if operator == policyv1alpha1.OverriderOpRemove {
			return nil, errors.New(`"" is the whole, which is not removed`)
		}
		return value, nil
	}
	return patchAt(document, tokens, "", operator, value)
}

// badEscape is a ~ in a token that stands for nothing.
var badEscape = regexp.MustCompile(`~([^01]|$)`)

// split turns a JSON pointer (RFC 6901) into its tokens.
func split(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	if !strings.HasPrefix(pointer, "/") {
		return nil, fmt.Errorf("%q is no JSON pointer: it must begin with /", pointer)
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, token := range tokens {
		if badEscape.MatchString(token) {
			return nil, fmt.Errorf("%q is no JSON pointer: ~ is written ~0, and / in a step is written ~1", pointer)
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

func patchAt(node any, tokens []string, at string, operator policyv1alpha1.OverriderOperator, value any) (any, error) {
	switch container := node.(type) {
	case map[string]any:
		return patchMap(container, tokens, at, operator, value)
	case []any:
		return patchList(container, tokens, at, operator, value)
	}
	return nil, fmt.Errorf("%q holds neither an object nor a list, so %q cannot be in it", orRoot(at), tokens[0])
}

func patchMap(container map[string]any, tokens []string, at string, operator policyv1alpha1.OverriderOperator,
	value any) (any, error) {
	key := tokens[0]
	child, found := container[key]
	if !found && (len(tokens) > 1 || operator != policyv1alpha1.OverriderOpAdd) {
		return nil, absentError{at + "/" + escape(key), len(tokens) == 1}
	}
	if len(tokens) > 1 {
		changed, err := patchAt(child, tokens[1:], at+"/"+escape(key), operator, value)
		if err == nil {
			container[key] = changed
		}
		return container, err
	}
	if operator == policyv1alpha1.OverriderOpRemove {
		delete(container, key)
	} else {
		container[key] = value
	}
	return container, nil
}

func patchList(list []any, tokens []string, at string, operator policyv1alpha1.OverriderOperator,
	value any) (any, error) {
	last := len(tokens) == 1
	index, err := indexOf(tokens[0], len(list), last && operator == policyv1alpha1.OverriderOpAdd)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", at+"/"+escape(tokens[0]), err)
	}
	switch {
	case !last:
		changed, err := patchAt(list[index], tokens[1:], at+"/"+tokens[0], operator, value)
		if err == nil {
			list[index] = changed
		}
		return list, err
	case operator == policyv1alpha1.OverriderOpAdd:
		return slices.Insert(list, index, value), nil
	case operator == policyv1alpha1.OverriderOpRemove:
		return slices.Delete(list, index, index+1), nil
	}
	list[index] = value
	return list, nil
}

// indexOf reads a list index. When adding, the index after the last, also written "-", is allowed.
func indexOf(token string, length int, adding bool) (int, error) {
	if adding && token == "-" {
		return length, nil
	}
	index, err := strconv.Atoi(token)
	if err != nil || index < 0 {
		return 0, fmt.Errorf("the list wants an index")
	}
	if index > length || (index == length && !adding) {
		return 0, fmt.Errorf("the list has %d entries", length)
	}
	return index, nil
}

// lookup finds what a JSON pointer points at.
func lookup(document any, pointer string) (any, error) {
	tokens, err := split(pointer)
	if err != nil {
		return nil, err
	}
	at := ""
	for _, token := range tokens {
		switch container := document.(type) {
		case map[string]any:
			child, found := container[token]
			if !found {
				return nil, fmt.Errorf("%q does not exist in the object", at+"/"+escape(token))
			}
			document = child
		case []any:
			index, err := indexOf(token, len(container), false)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", at+"/"+token, err)
			}
			document = container[index]
		default:
			return nil, fmt.Errorf("%q holds neither an object nor a list", orRoot(at))
		}
		at += "/" + escape(token)
	}
	return document, nil
}

func escape(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}

func orRoot(at string) string {
	if at == "" {
		return "/"
	}
	return at
}
