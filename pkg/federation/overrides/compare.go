package overrides

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// View is a cluster and the policies that shape objects for it.
type View struct {
	Cluster  core.Cluster
	Policies []Policy
}

// Difference is a field that has another value for two views.
type Difference struct {
	// Path of the field (RFC 6901).
	Path string
	// Before and After are its values; nil if the object has no such field then.
	Before, After any
	// SetBy is the setting that gives the field its value afterwards; nil if that is the object's own.
	SetBy *Setting
}

// Compare tells in which fields an object differs between two views, in the order of paths. An error is that of the
// second view if it has one, and names the policy and the field.
func Compare(object *unstructured.Unstructured, before, after View) ([]Difference, error) {
	then, _, err := Apply(object, after.Cluster, after.Policies)
	if err != nil {
		return nil, err
	}
	now, _, err := Apply(object, before.Cluster, before.Policies)
	if err != nil {
		return nil, fmt.Errorf("before the change: %w", err)
	}
	settings, err := Trace(object, after.Cluster, after.Policies)
	if err != nil {
		return nil, err
	}
	var result []Difference
	changes("", now.Object, then.Object, func(path string, value any) {
		result = append(result, Difference{
			Path: path, Before: valueAt(now.Object, path), After: value, SetBy: settingOf(settings, path),
		})
	})
	slices.SortFunc(result, func(a, b Difference) int { return strings.Compare(a.Path, b.Path) })
	return result, nil
}

// settingOf finds the setting of a field, of what it is part of, or of a part of it.
func settingOf(settings []Setting, path string) *Setting {
	for i := range settings {
		if other := settings[i].Path; other == path || strings.HasPrefix(path, other+"/") ||
			strings.HasPrefix(other, path+"/") {
			return &settings[i]
		}
	}
	return nil
}

// valueAt gives nil for what isn't there.
func valueAt(document any, path string) any {
	value, err := lookup(document, path)
	if err != nil {
		return nil
	}
	return value
}
