package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

func TestParsePath(t *testing.T) {
	for escaped, wanted := range map[string]Path{
		"api/v1/namespaces": {Version: "v1", Resource: "namespaces"},
		"api/v1/namespaces/a": {Version: "v1", Resource: "namespaces",
			Name: "a"},
		"api/v1/namespaces/a/status": {Version: "v1", Resource: "namespaces",
			Name: "a", Subresource: "status"},
		"api/v1/namespaces/a/pods": {Version: "v1", Namespace: "a",
			Resource: "pods"},
		"api/v1/namespaces/a/pods/b/log": {Version: "v1", Namespace: "a",
			Resource: "pods", Name: "b", Subresource: "log"},
		"apis/apps/v1/deployments": {Group: "apps", Version: "v1",
			Resource: "deployments"},
		"apis/g.io/v1/namespaces/a/things/b/scale": {Group: "g.io", Version: "v1", Namespace: "a",
			Resource: "things", Name: "b", Subresource: "scale"},
		"apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode": {Group: "rbac.authorization.k8s.io",
			Version: "v1", Resource: "clusterroles", Name: "system:node"},
		"version": {}, "apis": {}, "apis/apps": {}, "apis/apps/v1": {}, "openapi/v3/apis/apps/v1": {},
	} {
		got, err := ParsePath(escaped)
		if err != nil {
			t.Errorf("%s: %v", escaped, err)
		}
		got.segments = nil
		if !reflect.DeepEqual(got, wanted) {
			t.Errorf("%s: %+v", escaped, got)
		}
	}
	for _, escaped := range []string{"", "/", "api/", "healthz", "metrics/x", "api/v1/../x", "api/v1/a%2fb",
		"api/v1/a%2Fb",
		"api/v1/%2e%2e", "api/v1/.", "api/v1/a/b/c/d", "api/v1/a%", "api/v1/a%00", "openapi", "openapi/v2",
		"version/x"} {
		if p, err := ParsePath(escaped); err == nil {
			t.Errorf("%s: %+v", escaped, p)
		}
	}
}

// What is read means the same to everybody who reads it again: no dots, no separators, nothing but what was checked.
func FuzzParsePath(f *testing.F) {
	for _, path := range []string{"api/v1/namespaces/a/pods/b/log", "apis/g/v1/x/%2e%2e", "api/v1/a%2fb", "openapi/v3",
		"api/v1//"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, escaped string) {
		p, err := ParsePath(escaped)
		if err != nil {
			return
		}
		text := p.String()
		again, err := ParsePath(strings.TrimPrefix(text, "/"))
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%q: %+v, then %+v (%v)", escaped, p, again, err)
		}
		parsed, err := url.Parse("https://x" + text)
		if err != nil || parsed.Host != "x" || parsed.RawQuery != "" || strings.Contains(parsed.Path, "..") ||
			strings.Contains(parsed.Path, "//") || strings.Count(parsed.Path, "/") != strings.Count(text, "/") {
			t.Errorf("%q becomes %q", escaped, text)
		}
	})
}

func trimmed(text string) (string, error) {
	var out bytes.Buffer
	err := Trim(&out, strings.NewReader(text), Hidden{})
	return out.String(), err
}

func TestTrim(t *testing.T) {
	for text, wanted := range map[string]string{
		`{}`: `{}`,
		`{ "a": [1, 2, {"b": null}], "c": "d\"},{" }`:               `{"a":[1,2,{"b":null}],"c":"d\"},{"}`,
		`{"metadata":{"managedFields":[{"f:x":{}}],"name":"a"}}`:    `{"metadata":{"name":"a"}}`,
		`{"metadata":{"name":"a","managedFields":[{"x":"}"},[]]}}`:  `{"metadata":{"name":"a"}}`,
		`{"metadata":{"a":1,"managedFields":null,"b":2}}`:           `{"metadata":{"a":1,"b":2}}`,
		`{"metadata":{"managedFields":"x\"y"}}`:                     `{"metadata":{}}`,
		`{"a":[{"metadata":{"managedFields":[]}},{"metadata":{}}]}`: `{"a":[{"metadata":{}},{"metadata":{}}]}`,
		`{"x":{"managedFields":[1]},"managedFields":{}}`:            `{"x":{"managedFields":[1]},"managedFields":{}}`,
		`[]`: `[]`, `"x"`: `"x"`, `-1.5e3`: `-1.5e3`,
	} {
		if got, err := trimmed(text); err != nil || got != wanted {
			t.Errorf("%s: %s (%v), want %s", text, got, err, wanted)
		}
	}
	for _, text := range []string{`{"metadata":{"managedFields":[`, `{"a`, `{"a":"\`, strings.Repeat("[", 2000)} {
		if got, err := trimmed(text); err == nil {
			t.Errorf("%.50s: %.50s", text, got)
		}
	}
}

func TestTrimHidesValuesOfSecrets(t *testing.T) {
	const annotation = `"kubectl.kubernetes.io/last-applied-configuration"`
	for _, test := range []struct{ group, resource, text, wanted string }{
		{"", "secrets",
			`{"metadata":{"annotations":{"a":"b",` + annotation + `:"{\"data\":{\"x\":\"aGlkZGVu\"}}"},"name":"x"}}`,
			`{"metadata":{"annotations":{"a":"b"},"name":"x"}}`},
		{"", "secrets", `{"items":[{"metadata":{"annotations":{` + annotation + `:"aGlkZGVu","c":"d"}}}]}`,
			`{"items":[{"metadata":{"annotations":{"c":"d"}}}]}`},
		{"", "secrets", `{"metadata":{"annotations":{"kubectl.kubernetes.io\/last-applied-configuration":"aGlkZGVu"}}}`,
			`{"metadata":{"annotations":{}}}`},
		// Who writes a whole ConfigMap again is to write what it had.
		{"", "configmaps", `{"metadata":{"annotations":{` + annotation + `:"x"}}}`,
			`{"metadata":{"annotations":{` + annotation + `:"x"}}}`},
		{"work.karmada.io", "works",
			`{"spec":{"workload":{"manifests":[{"apiVersion":"v1","data":{"x":"aGlkZGVu"},"kind":"Secret",` +
				`"metadata":{"annotations":{` + annotation + `:"aGlkZGVu"},"name":"x"}},` +
				`{"kind":"Secret","stringData":{"a":["aGlkZGVu"]}}]}},"status":{"data":"kept"}}`,
			`{"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"Secret",` +
				`"metadata":{"annotations":{},"name":"x"}},{"kind":"Secret"}]}},"status":{"data":"kept"}}`},
		{"work.karmada.io", "works",
			`{"items":[{"spec":{"workload":{"manifests":[{"data":"aGlkZGVu"},{"x":{"data":"kept"}}]}}}]}`,
			`{"items":[{"spec":{"workload":{"manifests":[{},{"x":{"data":"kept"}}]}}}]}`},
		{"apps", "works", `{"spec":{"workload":{"manifests":[{"data":"kept"}]}}}`,
			`{"spec":{"workload":{"manifests":[{"data":"kept"}]}}}`},
	} {
		var out bytes.Buffer
		err := Trim(&out, strings.NewReader(test.text), HiddenOf(test.group, test.resource))
		if err != nil || out.String() != test.wanted {
			t.Errorf("%s: %s (%v), want %s", test.text, &out, err, test.wanted)
		}
	}
}

// endless is a JSON text of a cluster that means to fill the memory.
type endless struct {
	begin string
	read  int
}

func (e *endless) Read(into []byte) (int, error) {
	n := copy(into, e.begin)
	e.begin = e.begin[n:]
	for ; n < len(into); n++ {
		into[n] = 'x'
	}
	e.read += n
	return n, nil
}

// A string, or a name, that does not end is passed on as it comes.
func TestAttackStringsWithoutEnd(t *testing.T) {
	for what, begin := range map[string]string{"value": `{"a":"`, "name": `{"`, "escaped": `{"\"`} {
		source := &endless{begin: begin}
		trimmer := newTrimmer(source, Hidden{})
		buffer := make([]byte, 1<<10)
		for passed := 0; passed < 4<<20; {
			n, err := trimmer.Read(buffer)
			if err != nil || n == 0 {
				t.Fatalf("%s: %d %v after %d", what, n, err, passed)
			}
			passed += n
			if trimmer.out.Cap() > 64<<10 {
				t.Fatalf("%s: %d bytes are held after %d", what, trimmer.out.Cap(), passed)
			}
		}
	}
	for what, begin := range map[string]string{
		"managedFields": `{"metadata":{"managedFields":"`, "an object in it": `{"metadata":{"managedFields":{"`,
	} {
		source := &endless{begin: begin}
		trimmer := newTrimmer(io.LimitReader(source, 8<<20), Hidden{})
		text, err := io.ReadAll(trimmer)
		if !errors.Is(err, io.ErrUnexpectedEOF) || string(text) != `{"metadata":{` || trimmer.out.Cap() > 64<<10 {
			t.Errorf("%s: %.100s %v, %d bytes are held", what, text, err, trimmer.out.Cap())
		}
	}
}

// withoutManagedFields says the same slowly.
func withoutManagedFields(value any, isMetadata bool) any {
	switch v := value.(type) {
	case map[string]any:
		if isMetadata {
			delete(v, "managedFields")
		}
		for key := range v {
			v[key] = withoutManagedFields(v[key], key == "metadata")
		}
	case []any:
		for i := range v {
			v[i] = withoutManagedFields(v[i], false)
		}
	}
	return value
}

func FuzzTrim(f *testing.F) {
	for _, text := range []string{`{"metadata":{"managedFields":[],"a":1}}`,
		`[{"metadata":{"a":"\"","managedFields":{}}}]`, `{"a":[]}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := trimmed(text)
		var before, after any
		if json.Unmarshal([]byte(text), &before) != nil || strings.Contains(text, `\`) {
			return // What is no JSON ends somehow. Names may be escaped, which API servers don't do.
		}
		if err != nil && strings.Count(text, "[")+strings.Count(text, "{") < maxDepth {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil {
			return
		}
		if err := json.Unmarshal([]byte(got), &after); err != nil {
			t.Errorf("%q becomes %q: %v", text, got, err)
		}
		if wanted := withoutManagedFields(before, false); !reflect.DeepEqual(after, wanted) {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}
