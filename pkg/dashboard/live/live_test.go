package live

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/dashboard/proxy"
)

func TestFilter(t *testing.T) {
	i := &item{namespace: "garden-a", name: "one", fields: row{
		"name": "one", "region": "Here", "version": "1.34.2", "workers": []string{"pool:1-3"}, "hibernated": true,
		"conditions": map[string]string{"APIServerAvailable": "False"}, "operation": row{"state": "Failed"},
		"description": "two words", "uid": "abcdef",
	}}
	for text, wanted := range map[string]bool{
		"": true, "one": true, "ONE": true, "garden-a/one": true, "two": true, "three": false, "one here": true,
		"one there": false, `"two words"`: true, `"words two"`: false, "-one": false, "-three": true,
		"version:1.34": true, "version:1.35": false, "-version:1.35": true, "region:here": true, "nothing:x": false,
		"hibernated:true": true, "workers:pool": true, "conditions:apiserveravailable:false": true,
		"operation:failed": true,
		"abcdef":           false, `"`: true, "-": true, "   ": true,
	} {
		if got := parseFilter(text).matches(i); got != wanted {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// Rows are compared with the files of testdata: NAME.yaml has an object and NAME.json its row.
func TestRows(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		object, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		resource, group, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), ".")
		i, err := source{group: group, version: "v1", resource: resource, view: ViewRow}.render(object)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		golden := strings.TrimSuffix(file, ".yaml") + ".json"
		got, _ := json.MarshalIndent(i.fields, "", "  ")
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		wanted, err := os.ReadFile(golden)
		if err != nil || strings.TrimSpace(string(wanted)) != string(got) {
			t.Errorf("%s: %v, got\n%s", golden, err, got)
		}
	}
}

// What a shoot's list costs a browser.
func TestRowsAreSlim(t *testing.T) {
	text, err := os.ReadFile("testdata/shoots.core.gardener.cloud.yaml")
	if err != nil {
		t.Fatal(err)
	}
	object, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	i, err := source{group: "core.gardener.cloud", resource: "shoots", view: ViewRow}.render(object)
	if err != nil || len(i.text) > 900 {
		t.Errorf("%d bytes (%v)", len(i.text), err)
	}
}

// Rollouts are told with all their waves, and only where changes go from wave to wave.
func TestRolloutsOfBindings(t *testing.T) {
	const meta = `{"metadata":{"uid":"u","name":"b"},"spec":`
	const spec = `{"resource":{"apiVersion":"apps/v1","kind":"Deployment","namespace":"shop","name":"web"}`
	const status = `{"rollout":{"number":3,"phase":"Progressing","waves":[{"name":"first","clusters":["one"]}]}}`
	for what, test := range map[string]struct{ object, wanted string }{
		"staged": {
			meta + spec + `,"rollout":{},"rolloutControl":{"paused":true}},"status":` + status + `}`,
			`{"control":{"paused":true},"name":"b","object":{"apiVersion":"apps/v1","kind":"Deployment","name":"web",` +
				`"namespace":"shop"},"rollout":{"number":3,"phase":"Progressing","waves":[{"clusters":["one"],` +
				`"name":"first"}]},"staged":true,"uid":"u"}`,
		},
		"not any more": {
			meta + spec + `},"status":` + status + `}`, `{"name":"b","uid":"u"}`,
		},
	} {
		of := source{group: "work.karmada.io", version: "v1alpha2", resource: "resourcebindings", view: ViewRollout}
		i, err := of.render([]byte(test.object))
		if err != nil || string(i.text) != test.wanted {
			t.Errorf("%s: %v\n%s", what, err, i.text)
			continue
		}
		if parseFilter("staged:true").matches(i) != (what == "staged") {
			t.Errorf("%s: the filter of pages", what)
		}
	}
}

// Only bindings have rollouts.
func TestAttackViews(t *testing.T) {
	for message, good := range map[string]bool{
		`"apiVersion":"work.karmada.io/v1alpha2","resource":"resourcebindings","view":"rollout"`: true,
		`"apiVersion":"v1","resource":"secrets","view":"rollout"`:                                false,
		`"apiVersion":"v1","resource":"pods","view":"rollout"`:                                   false,
		`"apiVersion":"v1","resource":"pods","view":"all"`:                                       false,
	} {
		_, err := ParseRequest([]byte(`{"type":"subscribe","id":"a","cluster":"shoot/a/b",` + message + `}`))
		if (err == nil) != good {
			t.Errorf("%s: %v", message, err)
		}
	}
}

// A message that is taken leads to a path of a Kubernetes API, and nowhere else.
func FuzzParseRequest(f *testing.F) {
	f.Add(`{"type":"subscribe","id":"a","cluster":"garden","apiVersion":"v1","resource":"pods","namespace":"x"}`)
	f.Add(`{"type":"subscribe","id":"a","cluster":"shoot/a/b","apiVersion":"g/v1",` +
		`"resource":"x","name":"..","filter":"-a:\"b"}`)
	f.Add(`{"type":"ping"}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRequest([]byte(text))
		if err != nil {
			return
		}
		parseFilter(r.Filter).matches(&item{name: "x", fields: row{"a": "b"}})
		if r.Type != typeSubscribe {
			return
		}
		path, err := proxy.ParsePath(r.source().path())
		if err != nil || path.Resource != r.Resource || path.Namespace != r.Namespace || path.Name != "" {
			t.Errorf("%q leads to %+v (%v)", text, path, err)
		}
	})
}

// Objects of any form are shown or refused.
func FuzzRender(f *testing.F) {
	f.Add("pods", "", `{"metadata":{"name":"x"},"status":{"phase":"Running","containerStatuses":[{}]}}`)
	f.Add("shoots", "core.gardener.cloud",
		`{"metadata":{"labels":null},"status":{"lastErrors":[{}],"lastOperation":{}}}`)
	f.Add("works", "work.karmada.io", `{"spec":{"workload":{"manifests":[{}]}},"status":{"manifestStatuses":[{}]}}`)
	f.Fuzz(func(t *testing.T, resource, group, object string) {
		for _, view := range []View{ViewRow, ViewMeta, ViewObject, ViewRollout} {
			i, err := source{resource: resource, group: group, view: view}.render([]byte(object))
			if err == nil && !json.Valid(i.text) {
				t.Errorf("%s of %q is %q", view, object, i.text)
			}
		}
	})
}
