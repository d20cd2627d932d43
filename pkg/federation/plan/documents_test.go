package plan

import (
	"strings"
	"testing"
)

func TestParseTellsWhereEachObjectIsWritten(t *testing.T) {
	const text = `# A licence.
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}
`
	documents, err := Parse(strings.NewReader(text), "a.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range documents {
		got = append(got, d.String())
	}
	want :=
		"a.yaml, document 1: ConfigMap a\na.yaml, document 2, items[0]: ConfigMap b\na.yaml, document 2, items[1]: " +
			"ConfigMap shop/c"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

func TestParseTellsWhichDocumentIsWrong(t *testing.T) {
	const first = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n"
	tests := map[string]struct{ text, want string }{
		"no JSON": {"{", "a.yaml, document 2: cannot be read: "},
		"no YAML": {
			"a: 1\nb: [", "a.yaml, document 2: cannot be read: line 2: did not find expected node content (lines " +
				"are those of the document)",
		},
		"a list": {
			"- a\n", "a.yaml, document 2: it is no object but of type array; it must have apiVersion, kind and " +
				"metadata",
		},
		"a text": {
			"policy\n", "a.yaml, document 2: it is no object but of type string; it must have apiVersion, kind and " +
				"metadata",
		},
		"no kind": {"apiVersion: v1\n", "a.yaml, document 2: kind: must be given"},
		"no name": {
			"{apiVersion: v1, kind: ConfigMap}", "a.yaml, document 2: ConfigMap: metadata.name: must be given",
		},
		"no apiVersion": {
			"{kind: ConfigMap, metadata: {name: b}}", "a.yaml, document 2: ConfigMap b: apiVersion: must be given",
		},
		"an item": {
			"{apiVersion: v1, kind: List, items: [{kind: ConfigMap, metadata: {name: b}}]}",
			"a.yaml, document 2, items[0]: ConfigMap b: apiVersion: must be given",
		},
		"a binding": {
			"{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: b, namespace: shop}}",
			"a.yaml, document 2: ResourceBinding shop/b: a plan is about policies",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(strings.NewReader(first+tc.text), "a.yaml"); err == nil ||
				!strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n{}")
	f.Add(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}]}`)
	f.Add("items: 3\nkind: List")
	f.Fuzz(func(t *testing.T, text string) {
		documents, err := Parse(strings.NewReader(text), "a.yaml")
		if err != nil {
			return
		}
		for _, d := range documents {
			if object := d.Object; object.GetName() == "" || object.GetKind() == "" || object.GetAPIVersion() == "" {
				t.Errorf("%q: an object without a name or kind: %v", text, d)
			}
		}
	})
}
