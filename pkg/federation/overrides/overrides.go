// Package overrides changes an object for one member cluster, as override policies say. Its functions are pure: the
// object that is passed in stays as it is.
//
// Patches and pointers are its own (pointer.go): a policy that does not fit is refused with the step of the path that
// is missing and what to do about it, and objects are changed as they are, decoded. The library that applies patches of
// webhooks works on encoded documents, and names the whole path only.
package overrides

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/identity"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
	"github.com/trellis-garden/trellis/pkg/federation/selector"
)

// Policy is an override policy of either scope; Namespace is empty for cluster-wide ones.
type Policy struct {
	Namespace string
	Name      string
	Spec      *policyv1alpha1.OverrideSpec
}

// String names the policy for messages.
func (p Policy) String() string {
	if p.Namespace == "" {
		return "ClusterOverridePolicy " + p.Name
	}
	return "OverridePolicy " + p.Namespace + "/" + p.Name
}

// Applied records that a policy changed an object.
type Applied struct {
	PolicyName string                    `json:"policyName"`
	Overriders policyv1alpha1.Overriders `json:"overriders"`
}

// Record is what shaped an object, by the scope of the policy.
type Record struct {
	ClusterPolicies []Applied
	Policies        []Applied
}

// Apply changes a copy of the object for a cluster: first by the cluster-wide policies that select it, then by those
// of its namespace; in each scope the closer selector and then the later name come last, so that they win. An error
// names the policy and the field; then nothing is changed at all. What the object is always stays.
func Apply(object *unstructured.Unstructured, cluster core.Cluster,
	policies []Policy) (*unstructured.Unstructured, Record, error) {
	var record Record
	result := object.DeepCopy()
	for _, policy := range inOrder(policies, object) {
		applied, err := applyPolicy(result, cluster, policy)
		if err != nil {
			return nil, Record{}, fmt.Errorf("%s: %w", policy, err)
		}
		if policy.Namespace == "" {
			record.ClusterPolicies = append(record.ClusterPolicies, applied...)
		} else {
			record.Policies = append(record.Policies, applied...)
		}
	}
	return result, record, nil
}

// inOrder keeps the policies that select the object, in the order in which they are applied.
func inOrder(policies []Policy, object *unstructured.Unstructured) []Policy {
	type ranked struct {
		Policy
		rank selector.Rank
	}
	var selected []ranked
	for _, p := range policies {
		if rank := rankOf(p, object); rank != selector.NoMatch {
			selected = append(selected, ranked{p, rank})
		}
	}
	slices.SortFunc(selected, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(scope(a.Policy), scope(b.Policy)), cmp.Compare(a.rank, b.rank),
			strings.Compare(a.Name, b.Name))
	})
	result := make([]Policy, len(selected))
	for i, r := range selected {
		result[i] = r.Policy
	}
	return result
}

// Selects tells whether the policy is about an object.
func (p Policy) Selects(object *unstructured.Unstructured) bool {
	return rankOf(p, object) != selector.NoMatch
}

// rankOf: a policy without selectors takes every object of its scope; a namespaced one only those that it may change.
func rankOf(p Policy, object *unstructured.Unstructured) selector.Rank {
	if p.Namespace != "" && p.Namespace != object.GetNamespace() {
		return selector.NoMatch
	}
	if len(p.Spec.ResourceSelectors) == 0 {
		if p.mayNotChange(object) {
			return selector.NoMatch
		}
		return selector.ByKind
	}
	return selector.Best(p.Spec.ResourceSelectors, p.Namespace, object)
}

func scope(p Policy) int {
	if p.Namespace == "" {
		return 0
	}
	return 1
}

// rule is one step of a policy and where it was written.
type rule struct {
	path       string
	target     *policyv1alpha1.ClusterAffinity
	overriders *policyv1alpha1.Overriders
}

// rulesOf reads both forms of the spec. The older one is a single rule.
func rulesOf(spec *policyv1alpha1.OverrideSpec) []rule {
	if len(spec.OverrideRules) == 0 {
		return []rule{{path: "spec", target: spec.TargetCluster, overriders: &spec.Overriders}}
	}
	rules := make([]rule, len(spec.OverrideRules))
	for i := range spec.OverrideRules {
		r := &spec.OverrideRules[i]
		rules[i] = rule{
			path: fmt.Sprintf("spec.overrideRules[%d]", i), target: r.TargetCluster, overriders: &r.Overriders,
		}
	}
	return rules
}

// UnknownClusters tells of the names in a policy that no cluster of the fleet has.
func (p Policy) UnknownClusters(fleet core.Snapshot) []string {
	var problems []string
	for _, r := range rulesOf(p.Spec) {
		target, err := karmada.Affinity(r.path+".targetCluster", r.target)
		if err != nil {
			continue // Applying the policy tells.
		}
		for _, unknown := range target.Unknown(fleet) {
			problems = append(problems, unknown.Message)
		}
	}
	return problems
}

func applyPolicy(object *unstructured.Unstructured, cluster core.Cluster, policy Policy) ([]Applied, error) {
	var applied []Applied
	for _, r := range rulesOf(policy.Spec) {
		target, err := karmada.Affinity(r.path+".targetCluster", r.target)
		if err != nil {
			return nil, err
		}
		if !target.Matches(&cluster) {
			continue
		}
		if err := policy.applyOverriders(object, r.path+".overriders", r.overriders); err != nil {
			return nil, err
		}
		applied = append(applied, Applied{PolicyName: policy.Name, Overriders: *r.overriders})
	}
	return applied, nil
}

// step is one entry of the overriders. Errors begin with the field of the entry that is wrong.
type step struct {
	field string
	apply func(*unstructured.Unstructured) error
}

// stepsOf gives the entries in the order that the API promises.
func stepsOf(o *policyv1alpha1.Overriders) []step {
	var steps []step
	add := func(list string, i int, apply func(*unstructured.Unstructured) error) {
		steps = append(steps, step{fmt.Sprintf("%s[%d]", list, i), apply})
	}
	for i, entry := range o.ImageOverrider {
		add("imageOverrider", i, func(object *unstructured.Unstructured) error { return overrideImages(object, entry) })
	}
	for i, entry := range o.CommandOverrider {
		add("commandOverrider", i, func(object *unstructured.Unstructured) error {
			return overrideStrings(object, entry, "command")
		})
	}
	for i, entry := range o.ArgsOverrider {
		add("argsOverrider", i, func(object *unstructured.Unstructured) error {
			return overrideStrings(object, entry, "args")
		})
	}
	for i, entry := range o.LabelsOverrider {
		add("labelsOverrider", i, func(object *unstructured.Unstructured) error {
			object.SetLabels(overrideMap(object.GetLabels(), entry))
			return nil
		})
	}
	for i, entry := range o.AnnotationsOverrider {
		add("annotationsOverrider", i, func(object *unstructured.Unstructured) error {
			object.SetAnnotations(overrideMap(object.GetAnnotations(), entry))
			return nil
		})
	}
	for i, entry := range o.FieldOverrider {
		add("fieldOverrider", i, func(object *unstructured.Unstructured) error { return overrideField(object, entry) })
	}
	for i, entry := range o.Plaintext {
		add("plaintext", i, func(object *unstructured.Unstructured) error { return overridePlaintext(object, entry) })
	}
	return steps
}

// applyOverriders changes what the object holds. That it stays what it is, is checked after every entry.
func (p Policy) applyOverriders(object *unstructured.Unstructured, path string, o *policyv1alpha1.Overriders) error {
	steps := stepsOf(o)
	if len(steps) > 0 && p.mayNotChange(object) {
		return fmt.Errorf("%s: %w", path, errOthersRights(object))
	}
	before, account := identity.Of(object), p.account(object)
	for _, s := range steps {
		if err := s.apply(object); err != nil {
			return fmt.Errorf("%s.%s.%w", path, s.field, err)
		}
		if err := before.Check(identity.Of(object)); err != nil {
			return fmt.Errorf("%s.%s: %w", path, s.field, err)
		}
		if p.account(object) != account {
			return fmt.Errorf("%s.%s: %w", path, s.field, errAccount)
		}
	}
	return nil
}

func overridePlaintext(object *unstructured.Unstructured, entry policyv1alpha1.PlaintextOverrider) error {
	value, err := decode(entry.Value)
	if err != nil {
		return fmt.Errorf("value: %w", err)
	}
	own := ownMarks(object, entry.Path)
	document, err := patch(object.Object, entry.Path, entry.Operator, value)
	if err != nil {
		return fmt.Errorf("path: %w", err)
	}
	changed, ok := document.(map[string]any)
	if !ok {
		return fmt.Errorf("path: %q would replace the whole object by what is none", entry.Path)
	}
	object.Object = changed
	own.restore(object)
	return nil
}

// decode treats an absent value as null.
func decode(value *apiextensionsv1.JSON) (any, error) {
	if value == nil || len(value.Raw) == 0 {
		return nil, nil
	}
	var decoded any
	if err := yaml.Unmarshal(value.Raw, &decoded); err != nil {
		return nil, err
	}
	return integers(decoded), nil
}

// integers turns the whole numbers of a decoded document into int64, which objects hold.
func integers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = integers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case float64:
		if whole := int64(v); float64(whole) == v {
			return whole
		}
	}
	return value
}

func overrideMap(values map[string]string, entry policyv1alpha1.LabelAnnotationOverrider) map[string]string {
	for key, value := range entry.Value {
		_, found := values[key]
		switch {
		case entry.Operator == policyv1alpha1.OverriderOpRemove:
			delete(values, key)
		case entry.Operator == policyv1alpha1.OverriderOpAdd || found:
			if values == nil {
				values = map[string]string{}
			}
			values[key] = value
		}
	}
	return values
}

// containerPaths tells where the kinds that are known keep their containers, by group and kind.
var containerPaths = map[string][]string{
	"/Pod":             {"spec", "containers"},
	"apps/Deployment":  {"spec", "template", "spec", "containers"},
	"apps/ReplicaSet":  {"spec", "template", "spec", "containers"},
	"apps/DaemonSet":   {"spec", "template", "spec", "containers"},
	"apps/StatefulSet": {"spec", "template", "spec", "containers"},
	"batch/Job":        {"spec", "template", "spec", "containers"},
}

// containers of an object of a known kind; changes to them are changes to the object.
func containers(object *unstructured.Unstructured) []map[string]any {
	gvk := object.GroupVersionKind()
	path, known := containerPaths[gvk.Group+"/"+gvk.Kind]
	if !known {
		return nil
	}
	list, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	items, _ := list.([]any)
	var result []map[string]any
	for _, item := range items {
		if container, ok := item.(map[string]any); ok {
			result = append(result, container)
		}
	}
	return result
}

func overrideImages(object *unstructured.Unstructured, entry policyv1alpha1.ImageOverrider) error {
	if entry.Predicate == nil {
		for _, container := range containers(object) {
			if name, ok := container["image"].(string); ok {
				container["image"] = parseImage(name).override(entry).String()
			}
		}
		return nil
	}
	found, err := lookup(object.Object, entry.Predicate.Path)
	if err != nil {
		return fmt.Errorf("predicate.path: %w", err)
	}
	name, ok := found.(string)
	if !ok {
		return fmt.Errorf("predicate.path: %q holds no string", entry.Predicate.Path)
	}
	_, err = patch(object.Object, entry.Predicate.Path, policyv1alpha1.OverriderOpReplace,
		parseImage(name).override(entry).String())
	return err
}

func overrideStrings(object *unstructured.Unstructured, entry policyv1alpha1.CommandArgsOverrider, field string) error {
	for _, container := range containers(object) {
		if container["name"] != entry.ContainerName {
			continue
		}
		list, _ := container[field].([]any)
		if entry.Operator == policyv1alpha1.OverriderOpAdd {
			for _, value := range entry.Value {
				list = append(list, value)
			}
		} else {
			list = slices.DeleteFunc(list, func(item any) bool {
				text, ok := item.(string)
				return ok && slices.Contains(entry.Value, text)
			})
		}
		container[field] = list
	}
	return nil
}

// overrideField changes the JSON or YAML document that a string field holds.
func overrideField(object *unstructured.Unstructured, entry policyv1alpha1.FieldOverrider) error {
	found, err := lookup(object.Object, entry.FieldPath)
	if err != nil {
		return fmt.Errorf("fieldPath: %w", err)
	}
	text, ok := found.(string)
	if !ok {
		return fmt.Errorf("fieldPath: %q holds no string", entry.FieldPath)
	}
	changed, err := patchText(text, entry)
	if err != nil {
		return err
	}
	_, err = patch(object.Object, entry.FieldPath, policyv1alpha1.OverriderOpReplace, changed)
	return err
}

func patchText(text string, entry policyv1alpha1.FieldOverrider) (string, error) {
	var document any
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return "", fmt.Errorf("fieldPath: %q holds no valid document: %w", entry.FieldPath, err)
	}
	document = integers(document)
	form, operations, encode := "json", entry.JSON, json.Marshal
	if len(entry.YAML) > 0 {
		form, encode = "yaml", func(v any) ([]byte, error) { return yaml.Marshal(v) }
		operations = nil
		for _, o := range entry.YAML {
			operations = append(operations, policyv1alpha1.JSONPatchOperation(o))
		}
	}
	for i, o := range operations {
		value, err := decode(o.Value)
		if err != nil {
			return "", fmt.Errorf("%s[%d].value: %w", form, i, err)
		}
		if document, err = patch(document, o.SubPath, o.Operator, value); err != nil {
			return "", fmt.Errorf("%s[%d].subPath: %w", form, i, err)
		}
	}
	encoded, err := encode(document)
	return string(encoded), err
}
