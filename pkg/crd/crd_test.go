package crd

import (
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestEstablished(t *testing.T) {
	for name, test := range map[string]struct {
		conditions []any
		served     bool
		reason     string
	}{
		"new": {nil, false, "not established yet"},
		"served": {
			[]any{
				map[string]any{"type": "NamesAccepted", "status": "True"},
				map[string]any{"type": "Established", "status": "True"},
			}, true, "",
		},
		"taken": {
			[]any{map[string]any{"type": "NamesAccepted", "status": "False", "message": `"widgets" is already in use`}},
			false,
			`its names are not accepted: "widgets" is already in use`,
		},
		"not yet":  {[]any{map[string]any{"type": "Established", "status": "False"}}, false, "not established yet"},
		"nonsense": {[]any{"Established"}, false, "not established yet"},
	} {
		definition := &unstructured.Unstructured{
			Object: map[string]any{"status": map[string]any{"conditions": test.conditions}},
		}
		if served, reason := Established(definition); served != test.served || reason != test.reason {
			t.Errorf("%s: %v, %q", name, served, reason)
		}
	}
}

func TestRead(t *testing.T) {
	files := fstest.MapFS{
		"crds/a.yaml": {Data: []byte("kind: CustomResourceDefinition\nmetadata: {name: a}\n")},
		"bad/b.yaml":  {Data: []byte("a: b: c")},
	}
	definitions, err := Read(files, "crds")
	if err != nil || len(definitions) != 1 || definitions[0].GetName() != "a" {
		t.Errorf("%v, %v", definitions, err)
	}
	for _, folder := range []string{"bad", "none"} {
		if _, err := Read(files, folder); err == nil || !strings.Contains(err.Error(), folder) {
			t.Errorf("%s: %v", folder, err)
		}
	}
}
