package overrides

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/identity"
)

// marked is an object with labels and annotations of the fleet, and values of any kind in the path of patches.
const marked = `
apiVersion: v1
kind: Secret
metadata:
  name: a
  namespace: default
  labels: {app: shop, resourcetemplate.karmada.io/retain-replicas: "true"}
  annotations: {note: "{a: 1}", federation.trellis.garden/dependencies: "[]", kubernetes.io/service-account.name: robot}
type: kubernetes.io/service-account-token
data: {a: b, list: [1, {c: d}]}
`

func TestWhatAnObjectIsStays(t *testing.T) {
	plain := func(path, operator, value string) string {
		return fmt.Sprintf(`{plaintext: [{path: %q, operator: %s, value: %s}]}`, path, operator, value)
	}
	const own, account = "what an object is must stay", "make it the token of a service account"
	tests := map[string]struct{ overriders, want string }{
		"whole object": {
			plain("", "replace",
				`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a}}`),
			`plaintext[0]: "/apiVersion" would change: ` + own,
		},
		"whole object, of this name": {
			plain("", "replace", `{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: default}}`),
			`"/metadata/annotations/federation.trellis.garden~1dependencies" would change: ` + own,
		},
		"kind":    {plain("/kind", "replace", "ConfigMap"), `"/kind" would change`},
		"no kind": {plain("/kind", "remove", "null"), `"/kind" would change`},
		"namespace": {
			plain("/metadata/namespace", "replace", "kube-system"), `"/metadata/namespace" would change`,
		},
		"metadata": {plain("/metadata", "replace", "[]"), `would change`},
		"owners": {
			plain("/metadata/ownerReferences", "add", "[{name: x}]"), `"/metadata/ownerReferences" would change`,
		},
		"uid": {plain("/metadata/uid", "add", "x"), `"/metadata/uid" would change`},
		"own label": {
			plain("/metadata/labels/resourcetemplate.karmada.io~1retain-replicas", "replace", "x"), own,
		},
		"own label removed": {
			`{labelsOverrider: [{operator: remove, value: {app: ""}}, {operator: remove, value: {resourcetemplate.karmada.io/retain-replicas: ""}}]}`, `labelsOverrider[1]: `,
		},
		"own annotation added": {
			`{annotationsOverrider: [{operator: add, value: {work.karmada.io/name: x}}]}`,
			`annotationsOverrider[0]: "/metadata/annotations/work.karmada.io~1name" would change`,
		},
		"labels with an own one": {
			plain("/metadata/labels", "add", "{karmada.io/managed: x}"),
			`"/metadata/labels/karmada.io~1managed" would change`,
		},
		"labels that are none": {plain("/metadata/labels", "add", "[]"), ""},
		"document in an annotation": {
			`{fieldOverrider: [{fieldPath: /metadata/annotations/federation.trellis.garden~1dependencies, json: [{subPath: /-, operator: add, value: {}}]}]}`, `fieldOverrider[0]: "/metadata/ann`,
		},
		"image in a name": {
			`{imageOverrider: [{component: Tag, operator: add, value: x, predicate: {path: /metadata/name}}]}`,
			`imageOverrider[0]: "/metadata/name" would change`,
		},
		"type of a Secret": {plain("/type", "replace", "Opaque"), account},
		"account of a Secret": {
			`{annotationsOverrider: [{operator: replace, value: {kubernetes.io/service-account.name: admin}}]}`,
			account,
		},
		"content":                     {plain("/data/apiVersion", "add", "x"), ""},
		"labels as a whole":           {plain("/metadata/labels", "replace", "{b: c}"), ""},
		"no labels":                   {plain("/metadata/labels", "remove", "null"), ""},
		"annotations that are nobody": {`{annotationsOverrider: [{operator: remove, value: {note: ""}}]}`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := policy(t, "p", `{overriders: `+tc.overriders+`}`)
			got, _, err := Apply(parse(t, marked), core.Cluster{}, []Policy{p})
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if problem := another(parse(t, marked), got); problem != "" {
					t.Error(problem)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "OverridePolicy default/p: spec.overriders.") ||
				!strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
			if _, traceErr := Trace(parse(t, marked), core.Cluster{}, []Policy{p}); traceErr == nil {
				t.Error("Trace tells of no error")
			}
		})
	}
}

func TestWhatGivesRightsIsForClusterOverridePolicies(t *testing.T) {
	const roleBinding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: default}, roleRef: {name: view}, subjects: []}`
	const grab = `overriders: {plaintext: [{path: /subjects/-, operator: add, value: {kind: User, name: alice}}]}`
	selecting := func(apiVersion, kind string) string {
		return fmt.Sprintf(`{resourceSelectors: [{apiVersion: %s, kind: %s}], %s}`, apiVersion, kind, grab)
	}
	apply := func(object string, p Policy) (*unstructured.Unstructured, error) {
		got, _, err := Apply(parse(t, object), core.Cluster{}, []Policy{p})
		return got, err
	}
	_, err := apply(roleBinding, policy(t, "p", selecting("rbac.authorization.k8s.io/v1", "RoleBinding")))
	if want :=
		"OverridePolicy default/p: spec.overriders: an OverridePolicy changes no RoleBinding, which gives or limits " +
			"rights; a ClusterOverridePolicy may"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := apply(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: a, namespace: default}, subjects: []}`,
		policy(t, "p", selecting("v1", "ResourceQuota"))); err == nil {
		t.Error("a quota was changed")
	}
	got, err := apply(roleBinding, policy(t, "p", `{`+grab+`}`))
	if err != nil || len(at(t, got, "/subjects").([]any)) != 0 {
		t.Errorf("a policy without selectors: %v, %v", got, err)
	}
	clusterWide := policy(t, "p", selecting("rbac.authorization.k8s.io/v1", "RoleBinding"))
	clusterWide.Namespace = ""
	got, err = apply(roleBinding, clusterWide)
	if err != nil || len(at(t, got, "/subjects").([]any)) != 1 {
		t.Errorf("a ClusterOverridePolicy: %v, %v", got, err)
	}
	secret := policy(t, "p", `{overriders: {plaintext: [{path: /type, operator: replace, value: Opaque}]}}`)
	secret.Namespace = ""
	if got, err = apply(marked, secret); err != nil || at(t, got, "/type") != "Opaque" {
		t.Errorf("the type of a Secret: %v, %v", got, err)
	}
	secret.Spec.Overriders.Plaintext[0].Path = "/kind"
	if _, err = apply(marked, secret); !errors.Is(err, identity.ErrChanged) {
		t.Errorf("a ClusterOverridePolicy that changes the kind: %v", err)
	}
}

// another tells in words of its own why an object is not the one that it was.
func another(before, after *unstructured.Unstructured) string {
	if before.GroupVersionKind() != after.GroupVersionKind() || before.GetName() != after.GetName() ||
		before.GetNamespace() != after.GetNamespace() {
		return fmt.Sprintf("%s became %s %s/%s", before.GetKind(), after.GroupVersionKind(), after.GetNamespace(),
			after.GetName())
	}
	metadata := func(object *unstructured.Unstructured) map[string]any {
		rest := maps.Clone(object.Object["metadata"].(map[string]any))
		maps.DeleteFunc(rest, func(key string, value any) bool {
			return key == "labels" || key == "annotations" || value == nil
		})
		return rest
	}
	if was, is := metadata(before), metadata(after); !reflect.DeepEqual(was, is) {
		return fmt.Sprintf("metadata was %v, is %v", was, is)
	}
	ofFleet := func(values map[string]string) map[string]string {
		maps.DeleteFunc(values, func(key, _ string) bool {
			key = "." + key
			return !strings.Contains(key, ".karmada.io/") && !strings.Contains(key, ".trellis.garden/")
		})
		return values
	}
	for _, get := range []func(*unstructured.Unstructured) map[string]string{
		(*unstructured.Unstructured).GetLabels, (*unstructured.Unstructured).GetAnnotations,
	} {
		if was, is := ofFleet(get(before)), ofFleet(get(after)); !reflect.DeepEqual(was, is) {
			return fmt.Sprintf("of the fleet's, there was %v, is %v", was, is)
		}
	}
	return ""
}

// FuzzOverrides: whatever is written into a policy, an object stays what it is, and the one that was passed in stays as
// it is.
func FuzzOverrides(f *testing.F) {
	for _, seed := range []string{
		`{plaintext: [{path: "", operator: replace, value: {kind: x}}]}`,
		`{plaintext: [{path: /metadata, operator: add, value: {name: a}}, {path: /kind, operator: remove}]}`,
		`{plaintext: [{path: /metadata/labels, operator: replace, value: {karmada.io/a: b}}, {path: /metadata/annotations, operator: remove}]}`,
		`{plaintext: [{path: /data/list/1/c, operator: replace, value: [1.5, null, {x: {}}]}]}`,
		`{labelsOverrider: [{operator: add, value: {work.karmada.io/a: b, c: d}}], annotationsOverrider: [{operator: remove, value: {federation.trellis.garden/dependencies: ""}}]}`,
		`{imageOverrider: [{component: Registry, operator: replace, value: x, predicate: {path: /metadata/name}}]}`,
		`{fieldOverrider: [{fieldPath: /metadata/annotations/note, yaml: [{subPath: /a, operator: replace, value: 2}]}]}`,
		`{fieldOverrider: [{fieldPath: /metadata/namespace, yaml: [{subPath: "", operator: replace, value: kube-system}]}]}`,
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, text string, namespaced bool) {
		p := Policy{Name: "p", Spec: &policyv1alpha1.OverrideSpec{}}
		if err := yaml.Unmarshal([]byte(text), &p.Spec.Overriders); err != nil {
			return
		}
		if namespaced {
			p.Namespace = "default"
		}
		object := parse(t, marked)
		got, _, err := Apply(object, core.Cluster{}, []Policy{p})
		if problem := another(parse(t, marked), object); problem != "" ||
			!reflect.DeepEqual(parse(t, marked).Object, object.Object) {
			t.Fatalf("what was passed in changed: %s %v", problem, object)
		}
		if err != nil {
			return
		}
		if problem := another(object, got); problem != "" {
			t.Fatal(problem)
		}
		if namespaced && (got.Object["type"] != object.Object["type"] ||
			got.GetAnnotations()[AccountAnnotation] != "robot") {
			t.Fatalf("an OverridePolicy changed the account: %v", got)
		}
	})
}
