package v1

import (
	"reflect"
	"strings"
	"testing"
)

func TestResolveQuotations(t *testing.T) {
	resources := map[string]map[string]string{
		"account": {"user": "alice", "tls.key": "{{ .resources.account.data.user }}"},
	}
	given := map[string]any{
		"plain": "text", "number": 3.0, "off": false, "nothing": nil,
		"whole": "{{ .resources.account.data.user }}", "within": "user={{.resources.account.data.user}};",
		"deep": map[string]any{"list": []any{"{{ .resources.account.data.tls.key }}", 1.0}},
	}
	want := map[string]any{
		"plain": "text", "number": 3.0, "off": false, "nothing": nil, "whole": "alice", "within": "user=alice;",
		"deep": map[string]any{"list": []any{"{{ .resources.account.data.user }}", 1.0}},
	}
	got, err := ResolveQuotations(given, resources)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for name, test := range map[string]struct{ value, want string }{
		"no such key": {
			"{{ .resources.account.data.password }}", `values.a[0]: resource "account" has no key "password"`,
		},
		"no such resource": {"{{ .resources.other.data.user }}", `values.a[0]: resource "other" has no key "user"`},
	} {
		if _, err := ResolveQuotations(map[string]any{"a": []any{test.value}}, resources); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}
