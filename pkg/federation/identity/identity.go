// Package identity tells what an object is, apart from what it holds. Overrides, interpreters and Works may change the
// latter only.
package identity

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ErrChanged is wrapped by errors about objects that became others.
var ErrChanged = errors.New("what an object is must stay: apiVersion, kind, metadata but for labels and " +
	"annotations, and labels and annotations of karmada.io and trellis.garden")

// Identity of an object: the values of the fields that make it what it is, by JSON pointer. These are apiVersion, kind,
// all of metadata but labels and annotations, and those labels and annotations that are the fleet's own.
type Identity map[string]any

// Of an object. It shares nothing with it.
func Of(object *unstructured.Unstructured) Identity {
	result := Identity{}
	result.Add("/apiVersion", object.Object["apiVersion"])
	result.Add("/kind", object.Object["kind"])
	metadata, ok := object.Object["metadata"].(map[string]any)
	if !ok {
		result.Add("/metadata", object.Object["metadata"])
	}
	for field, value := range metadata {
		marks, isMap := value.(map[string]any)
		if !isMap || field != "labels" && field != "annotations" {
			result.Add("/metadata/"+field, value)
			continue
		}
		for key, mark := range marks {
			if IsOwn(key) {
				// A null among strings is read as an empty one.
				if mark == nil {
					mark = ""
				}
				result.Add("/metadata/"+field+"/"+strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1"),
					mark)
			}
		}
	}
	return result
}

// Add a field; one that holds null is as good as absent.
func (i Identity) Add(path string, value any) {
	if value != nil {
		i[path] = runtime.DeepCopyJSONValue(value)
	}
}

// Check says which field another identity has changed. Values that one of the tolerated identities has are none.
func (i Identity) Check(after Identity, tolerated ...Identity) error {
	fields := maps.Clone(i)
	maps.Copy(fields, after)
	for _, path := range slices.Sorted(maps.Keys(fields)) {
		value := after[path]
		isSame := func(other Identity) bool { return apiequality.Semantic.DeepEqual(other[path], value) }
		if !isSame(i) && !slices.ContainsFunc(tolerated, isSame) {
			return fmt.Errorf("%q would change: %w", path, ErrChanged)
		}
	}
	return nil
}

// ownDomains are those of keys of labels and annotations that mean something to the fleet.
var ownDomains = []string{"karmada.io", "trellis.garden"}

// IsOwn tells whether a label or annotation of that key is the fleet's own.
func IsOwn(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	return prefixed && slices.ContainsFunc(ownDomains,
		func(own string) bool { return domain == own || strings.HasSuffix(domain, "."+own) })
}
