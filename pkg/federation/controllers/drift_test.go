package controllers

import (
	"testing"

	"sigs.k8s.io/yaml"
)

func TestContains(t *testing.T) {
	tests := map[string]struct {
		have, want string
		result     bool
	}{
		"the same":                     {"{a: 1, b: [x]}", "{a: 1, b: [x]}", true},
		"more fields are the member's": {"{a: 1, b: 2}", "{a: 1}", true},
		"a value was changed":          {"{a: 2}", "{a: 1}", false},
		"a field was removed":          {"{}", "{a: 1}", false},
		"empty is as good as absent":   {"{}", "{a: {}, b: []}", true},
		"another form of a quantity":   {"{cpu: 500m}", "{cpu: '0.5'}", true},
		"an injected container": {
			"{c: [{name: a, image: x}, {name: sidecar}]}", "{c: [{name: a, image: x}]}", true,
		},
		"another order of containers":   {"{c: [{name: b}, {name: a}]}", "{c: [{name: a}, {name: b}]}", true},
		"a container was changed":       {"{c: [{name: a, image: y}]}", "{c: [{name: a, image: x}]}", false},
		"a container was removed":       {"{c: [{name: b}]}", "{c: [{name: a}]}", false},
		"an argument was added":         {"{args: [a, b]}", "{args: [a]}", false},
		"an argument was removed":       {"{args: [a]}", "{args: [a, b]}", false},
		"defaults in unnamed entries":   {"{ports: [{port: 80, protocol: TCP}]}", "{ports: [{port: 80}]}", true},
		"an object instead of a string": {"{a: {}}", "{a: x}", false},
	}
	for name, tc := range tests {
		var have, want any
		if err := yaml.Unmarshal([]byte(tc.have), &have); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(tc.want), &want); err != nil {
			t.Fatal(err)
		}
		if got := contains(have, want); got != tc.result {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
