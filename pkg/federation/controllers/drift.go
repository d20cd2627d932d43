package controllers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
)

// contentHash is of everything that is applied.
func contentHash(object *unstructured.Unstructured) (string, error) {
	encoded, err := json.Marshal(object.Object)
	if err != nil {
		return "", fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8]), nil
}

// inSync tells whether a member has the wanted object: it was applied in this form, and every field of it still holds
// its value. Fields that are not wanted belong to the member. False may be wrong when the member's server writes a
// value in another form; then applying again changes nothing.
func inSync(wanted, observed *unstructured.Unstructured) bool {
	return wanted.GetAnnotations()[workv1alpha1.ContentHashAnnotation] ==
		observed.GetAnnotations()[workv1alpha1.ContentHashAnnotation] &&
		contains(observed.Object, wanted.Object)
}

// contains tells whether every field of want is in have.
func contains(have, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		return ok && containsMap(h, w)
	case []any:
		h, ok := have.([]any)
		return ok && containsList(h, w)
	case string:
		h, ok := have.(string)
		return ok && (h == w || sameQuantity(h, w))
	}
	return have == want
}

// containsMap: an empty object says as much as an absent one.
func containsMap(have, want map[string]any) bool {
	for key, value := range want {
		child, found := have[key]
		if !found && isEmpty(value) {
			continue
		}
		if !contains(child, value) {
			return false
		}
	}
	return true
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return value == nil
}

// containsList compares lists of named entries by name, since the member may add some; others entry by entry.
func containsList(have, want []any) bool {
	byName := map[string]any{}
	for _, item := range have {
		if name, ok := nameOf(item); ok {
			byName[name] = item
		}
	}
	if len(byName) != len(have) && len(have) != len(want) {
		return false
	}
	for i, item := range want {
		name, named := nameOf(item)
		switch {
		case named && len(byName) == len(have):
			if !contains(byName[name], item) {
				return false
			}
		case i >= len(have) || !contains(have[i], item):
			return false
		}
	}
	return true
}

func nameOf(item any) (string, bool) {
	object, _ := item.(map[string]any)
	name, ok := object["name"].(string)
	return name, ok
}

// sameQuantity: servers write quantities in their shortest form.
func sameQuantity(a, b string) bool {
	qa, err := resource.ParseQuantity(a)
	if err != nil {
		return false
	}
	qb, err := resource.ParseQuantity(b)
	return err == nil && qa.Cmp(qb) == 0
}
