package overrides

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: nginx
  namespace: default
  labels: {app: nginx}
  annotations: {old: note}
spec:
  replicas: 2
  template:
    spec:
      initContainers:
      - {name: init, image: "busybox:1"}
      containers:
      - {name: nginx, image: "nginx:1.27", args: [a, b]}
`

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.Object = integers(object.Object).(map[string]any)
	return object
}

func policy(t *testing.T, name, spec string) Policy {
	t.Helper()
	p := Policy{Namespace: "default", Name: name, Spec: &policyv1alpha1.OverrideSpec{}}
	if err := yaml.UnmarshalStrict([]byte(spec), p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

// at reads a field by its JSON pointer.
func at(t *testing.T, object *unstructured.Unstructured, pointer string) any {
	t.Helper()
	value, err := lookup(object.Object, pointer)
	if err != nil {
		return nil
	}
	return value
}

func TestOverriders(t *testing.T) {
	const image = "/spec/template/spec/containers/0/image"
	tests := map[string]struct {
		overriders string
		pointer    string
		want       any
	}{
		"plaintext replace": {
			`plaintext: [{path: ` + image + `, operator: replace, value: other}]`, image, "other",
		},
		"plaintext replace of number": {
			`plaintext: [{path: /spec/replicas, operator: replace, value: 7}]`, "/spec/replicas", int64(7),
		},
		"plaintext add replaces a map": {
			`plaintext: [{path: /metadata/annotations, operator: add, value: {foo: bar}}]`, "/metadata/annotations",
			map[string]any{"foo": "bar"},
		},
		"plaintext add to a list": {
			`plaintext: [{path: /spec/template/spec/containers/0/args/-, operator: add, value: c}]`,
			"/spec/template/spec/containers/0/args", []any{"a", "b", "c"},
		},
		"plaintext insert": {
			`plaintext: [{path: /spec/template/spec/containers/0/args/0, operator: add, value: c}]`,
			"/spec/template/spec/containers/0/args", []any{"c", "a", "b"},
		},
		"plaintext remove": {
			`plaintext: [{path: /metadata/labels/app, operator: remove}]`, "/metadata/labels", map[string]any{},
		},
		"plaintext escaped key": {
			`plaintext: [{path: /metadata/labels/a~1b, operator: add, value: c}]`, "/metadata/labels/a~1b", "c",
		},
		"registry": {
			`imageOverrider: [{component: Registry, operator: add, value: r.example}]`, image, "r.example/nginx:1.27",
		},
		"repository": {
			`imageOverrider: [{component: Repository, operator: replace, value: library/nginx}]`, image,
			"library/nginx:1.27",
		},
		"tag appended": {
			`imageOverrider: [{component: Tag, operator: add, value: -alpine}]`, image, "nginx:1.27-alpine",
		},
		"tag removed": {`imageOverrider: [{component: Tag, operator: remove}]`, image, "nginx"},
		"init containers stay": {
			`imageOverrider: [{component: Tag, operator: remove}]`, "/spec/template/spec/initContainers/0/image",
			"busybox:1",
		},
		"image by path": {
			`imageOverrider: [{component: Tag, operator: replace, value: "2", predicate: {path: /spec/template/spec/initContainers/0/image}}]`, "/spec/template/spec/initContainers/0/image", "busybox:2",
		},
		"command added": {
			`commandOverrider: [{containerName: nginx, operator: add, value: [run]}]`,
			"/spec/template/spec/containers/0/command", []any{"run"},
		},
		"args removed": {
			`argsOverrider: [{containerName: nginx, operator: remove, value: [a]}]`,
			"/spec/template/spec/containers/0/args", []any{"b"},
		},
		"args of another container": {
			`argsOverrider: [{containerName: x, operator: remove, value: [a]}]`,
			"/spec/template/spec/containers/0/args", []any{"a", "b"},
		},
		"label added": {
			`labelsOverrider: [{operator: add, value: {env: dev}}]`, "/metadata/labels",
			map[string]any{"app": "nginx", "env": "dev"},
		},
		"label replaced": {
			`labelsOverrider: [{operator: replace, value: {app: web}}]`, "/metadata/labels",
			map[string]any{"app": "web"},
		},
		"absent label not replaced": {
			`labelsOverrider: [{operator: replace, value: {bar: test}}, {operator: remove, value: {for: for}}]`,
			"/metadata/labels", map[string]any{"app": "nginx"},
		},
		"annotation removed": {
			`annotationsOverrider: [{operator: remove, value: {old: any}}]`, "/metadata/annotations", map[string]any{},
		},
		"plaintext comes after labels": {
			"labelsOverrider: [{operator: add, value: {env: dev}}]\nplaintext: [{path: /metadata/labels/env, " +
				"operator: replace, value: last}]", "/metadata/labels/env", "last",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var o policyv1alpha1.Overriders
			if err := yaml.UnmarshalStrict([]byte(tc.overriders), &o); err != nil {
				t.Fatal(err)
			}
			object := parse(t, deployment)
			got, _, err := Apply(object, core.Cluster{Name: "m1"},
				[]Policy{{Namespace: "default", Name: "p", Spec: &policyv1alpha1.OverrideSpec{Overriders: o}}})
			if err != nil {
				t.Fatal(err)
			}
			if value := at(t, got, tc.pointer); !cmp.Equal(value, tc.want) {
				t.Errorf("got %#v, want %#v", value, tc.want)
			}
			if diff := cmp.Diff(parse(t, deployment).Object, object.Object); diff != "" {
				t.Errorf("the object that was passed in changed: %s", diff)
			}
		})
	}
}

func TestErrorsNamePolicyAndField(t *testing.T) {
	tests := map[string]struct{ spec, want string }{
		"replace of a missing path": {
			`{overriders: {plaintext: [{path: /spec/nothing/here, operator: replace, value: 1}]}}`,
			`OverridePolicy default/p: spec.overriders.plaintext[0].path: "/spec/nothing" does not exist in the object; give a path that exists`,
		},
		"replace of a missing key": {
			`{overriders: {plaintext: [{path: /spec/nothing, operator: replace, value: 1}]}}`,
			`OverridePolicy default/p: spec.overriders.plaintext[0].path: "/spec/nothing" does not exist in the object; ` +
				`give a path that exists, or use operator add`,
		},
		"add below a missing path": {
			`{overriders: {plaintext: [{path: /spec/nothing/at/all, operator: add, value: 1}]}}`,
			`OverridePolicy default/p: spec.overriders.plaintext[0].path: "/spec/nothing" does not exist in the object; ` +
				`operator add makes only the last step of a path: add "/spec/nothing" before, or give a path that exists`,
		},
		"an escape of nothing": {
			`{overriders: {plaintext: [{path: /metadata/labels/a~2b, operator: add, value: c}]}}`,
			`OverridePolicy default/p: spec.overriders.plaintext[0].path: "/metadata/labels/a~2b" is no JSON pointer: ` +
				`~ is written ~0, and / in a step is written ~1`,
		},
		"removal of the whole": {
			`{overriders: {plaintext: [{path: "", operator: remove}]}}`,
			`OverridePolicy default/p: spec.overriders.plaintext[0].path: "" is the whole, which is not removed`,
		},
		"remove of a missing key": {
			`{overrideRules: [{overriders: {}}, {overriders: {plaintext: [{path: /metadata/labels/none, operator: remove}]}}]}`,
			`OverridePolicy default/p: spec.overrideRules[1].overriders.plaintext[0].path: "/metadata/labels/none" does not exist in the object; ` +
				`there is nothing to remove: leave the entry out, or give a path that exists`,
		},
		"index out of range": {
			`{overriders: {imageOverrider: [{component: Tag, operator: remove, predicate: {path: /spec/template/spec/containers/5/image}}]}}`,
			`OverridePolicy default/p: spec.overriders.imageOverrider[0].predicate.path: "/spec/template/spec/containers/5": the list has 1 entries`,
		},
		"key in a scalar": {
			`{overriders: {plaintext: [{path: /spec/replicas/x, operator: add, value: 1}]}}`,
			`OverridePolicy default/p: spec.overriders.plaintext[0].path: "/spec/replicas" holds neither an object nor a list, so "x" cannot be in it`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := Apply(parse(t, deployment), core.Cluster{}, []Policy{policy(t, "p", tc.spec)})
			if err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestTargetCluster(t *testing.T) {
	spec :=
		`{targetCluster: {clusterNames: [member1], labelSelector: {matchLabels: {region: dc1}}}, overriders: {labelsOverrider: [{operator: add, value: {hit: "yes"}}]}}`
	tests := map[string]struct {
		cluster core.Cluster
		want    bool
	}{
		"name and label": {core.Cluster{Name: "member1", Labels: map[string]string{"region": "dc1"}}, true},
		"name only":      {core.Cluster{Name: "member1"}, false},
		"label only":     {core.Cluster{Name: "member2", Labels: map[string]string{"region": "dc1"}}, false},
	}
	for name, tc := range tests {
		got, record, err := Apply(parse(t, deployment), tc.cluster, []Policy{policy(t, "p", spec)})
		if err != nil {
			t.Fatal(err)
		}
		if hit := at(t, got, "/metadata/labels/hit") != nil; hit != tc.want || (len(record.Policies) > 0) != tc.want {
			t.Errorf("%s: overridden %v, recorded %v, want %v", name, hit, record.Policies, tc.want)
		}
	}
}

func TestOrderOfPolicies(t *testing.T) {
	set := func(value, selectors string) string {
		return `{resourceSelectors: ` + selectors + `, overriders: {labelsOverrider: [{operator: add, value: {who: ` +
			value + `}}]}}`
	}
	const byName, byKind = `[{apiVersion: apps/v1, kind: Deployment, name: nginx}]`, `[{apiVersion: apps/v1, kind: Deployment}]`
	clusterWide := policy(t, "z", set("cluster-wide", byName))
	clusterWide.Namespace = ""
	tests := map[string]struct {
		policies []Policy
		want     string
	}{
		"namespaced after cluster-wide": {
			[]Policy{policy(t, "a", set("namespaced", byKind)), clusterWide}, "namespaced",
		},
		"closer selector wins": {
			[]Policy{policy(t, "a", set("by-name", byName)), policy(t, "b", set("by-kind", byKind))}, "by-name",
		},
		"later name wins": {
			[]Policy{policy(t, "b", set("b", byKind)), policy(t, "a", set("a", byKind))}, "b",
		},
		"no selector is the weakest": {
			[]Policy{policy(t, "a", set("by-name", byName)), policy(t, "b", set("any", `[]`))}, "by-name",
		},
	}
	for name, tc := range tests {
		got, _, err := Apply(parse(t, deployment), core.Cluster{}, tc.policies)
		if err != nil {
			t.Fatal(err)
		}
		if value := at(t, got, "/metadata/labels/who"); value != tc.want {
			t.Errorf("%s: got %v, want %s", name, value, tc.want)
		}
	}
}

func TestFieldOverrider(t *testing.T) {
	configMap :=
		parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default}, data: {inJSON: "+
			"'{\"a\":1}', inYAML: \"a:\\n  b: 1\\n\"}}")
	p := policy(t, "p", `{overriders: {fieldOverrider: [
		{fieldPath: /data/inJSON, json: [{subPath: /a, operator: replace, value: 2}]},
		{fieldPath: /data/inYAML, yaml: [{subPath: /a/c, operator: add, value: x}]}]}}`)
	got, _, err := Apply(configMap, core.Cluster{}, []Policy{p})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"inJSON": `{"a":2}`, "inYAML": "a:\n  b: 1\n  c: x\n"},
		got.Object["data"]); diff != "" {
		t.Error(diff)
	}
}

func TestParseImage(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for name, want := range map[string]image{
		"nginx":                   {"", "nginx", "", ""},
		"library/nginx:1":         {"", "library/nginx", "1", ""},
		"localhost/nginx":         {"localhost", "nginx", "", ""},
		"r.example:5000/a/b:v1":   {"r.example:5000", "a/b", "v1", ""},
		"r.example/a@" + digest:   {"r.example", "a", "", digest},
		"r.example/a:1@" + digest: {"r.example", "a", "1", digest},
	} {
		if got := parseImage(name); got != want || got.String() != name {
			t.Errorf("%s: got %+v, written %s", name, got, got)
		}
	}
	replaced := parseImage("a:1@" + digest).override(policyv1alpha1.ImageOverrider{
		Component: policyv1alpha1.ImageTag, Operator: policyv1alpha1.OverriderOpReplace, Value: "2",
	})
	if replaced.String() != "a:2" {
		t.Error(replaced)
	}
}
