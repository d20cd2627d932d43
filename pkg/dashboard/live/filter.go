package live

import (
	"fmt"
	"slices"
	"strings"
)

// filter lets items through that have all of its words.
type filter []word

// word is a part of a filter.
type word struct {
	// field that has to have the text; empty if any may have it.
	field, text string
	not         bool
}

// maxWords bounds what each item costs.
const maxWords = 20

// parseFilter understands words, "several words", -not and field:value.
func parseFilter(text string) filter {
	var result filter
	for _, part := range split(strings.ToLower(text)) {
		w := word{}
		part, w.not = strings.CutPrefix(part, "-")
		if field, value, found := strings.Cut(part, ":"); found && field != "" && !strings.ContainsAny(field, `" `) {
			w.field, part = field, value
		}
		if w.text = strings.Trim(part, `"`); w.text == "" {
			continue
		}
		if result = append(result, w); len(result) == maxWords {
			break
		}
	}
	return result
}

// split cuts at spaces that are not in quotes.
func split(text string) []string {
	quoted := false
	return strings.FieldsFunc(text, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
}

// matches tells whether an item is let through.
func (f filter) matches(i *item) bool {
	for _, w := range f {
		if i.has(w) == w.not {
			return false
		}
	}
	return true
}

// has tells whether an item has a word.
func (i *item) has(w word) bool {
	if w.field == "" {
		if strings.Contains(strings.ToLower(i.namespace+"/"+i.name), w.text) {
			return true
		}
		return contains(i.fields, w.text)
	}
	for field, value := range i.fields {
		if strings.EqualFold(field, w.field) {
			return contains(value, w.text)
		}
	}
	return false
}

// contains looks for a text in values, however deep.
func contains(value any, text string) bool {
	switch v := value.(type) {
	case nil:
		return false
	case string:
		return strings.Contains(strings.ToLower(v), text)
	case []string:
		return slices.ContainsFunc(v, func(s string) bool { return contains(s, text) })
	case map[string]string:
		for key, s := range v {
			if contains(key+":"+s, text) {
				return true
			}
		}
		return false
	case row:
		return containsRow(v, text)
	case map[string]any:
		return containsRow(v, text)
	case []row:
		return slices.ContainsFunc(v, func(r row) bool { return containsRow(r, text) })
	}
	return strings.Contains(strings.ToLower(fmt.Sprint(value)), text)
}

func containsRow(r map[string]any, text string) bool {
	for field, value := range r {
		if field != "uid" && contains(value, text) {
			return true
		}
	}
	return false
}
