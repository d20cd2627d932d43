package identity

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestCheck(t *testing.T) {
	const before = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, labels: {c: d, karmada.io/managed: "true"}, annotations: {federation.trellis.garden/x: y}}, data: {e: f}}`
	tests := map[string]struct{ after, want string }{
		"the same":         {before, ""},
		"content":          {strings.Replace(before, "e: f", "g: h", 1), ""},
		"somebody's label": {strings.Replace(before, "c: d", "c: e, example.com/f: g", 1), ""},
		"null":             {strings.Replace(before, "name: a", "name: a, creationTimestamp: null", 1), ""},
		"apiVersion":       {strings.Replace(before, "v1", "v2", 1), "/apiVersion"},
		"kind":             {strings.Replace(before, "ConfigMap", "Secret", 1), "/kind"},
		"name":             {strings.Replace(before, "name: a", "name: x", 1), "/metadata/name"},
		"no name":          {strings.Replace(before, "name: a", "generateName: a", 1), "/metadata/generateName"},
		"namespace": {
			strings.Replace(before, "namespace: b", "namespace: kube-system", 1), "/metadata/namespace",
		},
		"owners": {
			strings.Replace(before, "name: a", "name: a, ownerReferences: [{name: x}]", 1), "/metadata/ownerReferences",
		},
		"finalizers": {
			strings.Replace(before, "name: a", "name: a, finalizers: [x]", 1), "/metadata/finalizers",
		},
		"own label": {
			strings.Replace(before, `karmada.io/managed: "true"`, `karmada.io/managed: "false"`, 1),
			"/metadata/labels/karmada.io~1managed",
		},
		"own label removed": {
			strings.Replace(before, `, karmada.io/managed: "true"`, ``, 1), "/metadata/labels/karmada.io~1managed",
		},
		"own label added": {
			strings.Replace(before, "c: d", "work.karmada.io/a: d", 1), "/metadata/labels/work.karmada.io~1a",
		},
		"own annotation": {
			strings.Replace(before, "x: y", "x: z", 1), "/metadata/annotations/federation.trellis.garden~1x",
		},
		"no labels any more": {
			strings.Replace(before, `{c: d, karmada.io/managed: "true"}`, "[]", 1), "/metadata/labels",
		},
		"no metadata": {`{apiVersion: v1, kind: ConfigMap, metadata: []}`, "/metadata"},
		"nothing":     {`{}`, "/apiVersion"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := Of(parse(t, before)).Check(Of(parse(t, tc.after)))
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrChanged) || !strings.HasPrefix(err.Error(), `"`+tc.want+`" would change`) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestToleratedValues(t *testing.T) {
	wanted := Of(parse(t, `{kind: A, metadata: {name: a}}`))
	observed := Of(parse(t, `{kind: A, metadata: {name: a, finalizers: [x]}}`))
	if err := wanted.Check(observed, observed); err != nil {
		t.Error(err)
	}
	if err := wanted.Check(Of(parse(t, `{kind: A, metadata: {name: a, finalizers: [y]}}`)), observed); !errors.Is(err,
		ErrChanged) {
		t.Error(err)
	}
}

func TestIsOwn(t *testing.T) {
	for key, want := range map[string]bool{
		"karmada.io/managed": true, "work.karmada.io/name": true, "trellis.garden/a": true,
		"federation.trellis.garden/a": true,
		"app":                         false, "karmada.io": false, "example.com/karmada.io": false,
		"mykarmada.io/a":           false,
		"karmada.io.example.com/a": false,
	} {
		if got := IsOwn(key); got != want {
			t.Errorf("%s: got %v", key, got)
		}
	}
}
