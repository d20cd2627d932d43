package overrides

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// Setting is a field that a rule changed.
type Setting struct {
	// Path of the field (RFC 6901).
	Path string
	// Value that it has since; nil if the rule removed it.
	Value any
	// Policy and Rule, such as "OverridePolicy default/a" and "spec.overrideRules[1]".
	Policy, Rule string
}

// Trace tells, for every field that Apply changes, which rule set it last, in the order of paths.
func Trace(object *unstructured.Unstructured, cluster core.Cluster, policies []Policy) ([]Setting, error) {
	result := object.DeepCopy()
	settings := map[string]Setting{}
	for _, policy := range inOrder(policies, object) {
		for _, r := range rulesOf(policy.Spec) {
			target, err := karmada.Affinity(r.path+".targetCluster", r.target)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", policy, err)
			}
			if !target.Matches(&cluster) {
				continue
			}
			before := result.DeepCopy()
			if err := policy.applyOverriders(result, r.path+".overriders", r.overriders); err != nil {
				return nil, fmt.Errorf("%s: %w", policy, err)
			}
			changes("", before.Object, result.Object, func(path string, value any) {
				settings[path] = Setting{Path: path, Value: value, Policy: policy.String(), Rule: r.path}
			})
		}
	}
	return slices.SortedFunc(maps.Values(settings), func(a, b Setting) int { return strings.Compare(a.Path, b.Path) }),
		nil
}

// changes reports the fields in which two values differ; lists of different lengths as a whole.
func changes(path string, before, after any, report func(string, any)) {
	switch was := before.(type) {
	case map[string]any:
		is, ok := after.(map[string]any)
		if !ok {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(union(was, is))) {
			changes(path+"/"+escape(key), was[key], is[key], report)
		}
		return
	case []any:
		is, ok := after.([]any)
		if !ok || len(is) != len(was) {
			break
		}
		for i := range was {
			changes(path+"/"+strconv.Itoa(i), was[i], is[i], report)
		}
		return
	}
	if !apiequality.Semantic.DeepEqual(before, after) {
		report(path, after)
	}
}

func union(a, b map[string]any) map[string]any {
	result := maps.Clone(a)
	if result == nil {
		result = map[string]any{}
	}
	maps.Copy(result, b)
	return result
}
