package apis_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// TestAttackReferencesOfFleets does for the kinds of fleets what TestAttackReferences does for those of the garden.
func TestAttackReferencesOfFleets(t *testing.T) {
	checkDecisions(t, "references-fleet.txt", referencesOfDefinitions(t, "fleet"),
		"reader", "namespace", "checked", "member", "shared", "operator", "federation", "nothing")
}

// TestAttackReferencesOfSeeds does the same for the kinds of seeds.
func TestAttackReferencesOfSeeds(t *testing.T) {
	checkDecisions(t, "references-seed.txt", referencesOfDefinitions(t, "seed"), "namespace", "checked", "gardenlet",
		"own", "unread", "nothing")
}

// referencesOfDefinitions returns the fields, as <kind>.<path>, of the CustomResourceDefinitions of a folder that name
// another object.
func referencesOfDefinitions(t *testing.T, folder string) sets.Set[string] {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../charts/crds", folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := sets.New[string]()
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, definition); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, version := range definition.Spec.Versions {
			for field, schema := range version.Schema.OpenAPIV3Schema.Properties {
				if field != "metadata" && field != "kind" && field != "apiVersion" {
					found = found.Union(referencesIn(definition.Spec.Names.Kind+"."+field, field, &schema))
				}
			}
		}
	}
	return found
}

// referencesIn returns the fields at and below a path. Of a reference that is a structure each part is one. What has no
// schema may hold any.
func referencesIn(path, field string, schema *apiextensionsv1.JSONSchemaProps) sets.Set[string] {
	for schema.Items != nil && schema.Items.Schema != nil {
		path, schema = path+"[]", schema.Items.Schema
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		return referencesIn(path+"{}", field, schema.AdditionalProperties.Schema)
	}
	found := sets.New[string]()
	isOpen := ptr.Deref(schema.XPreserveUnknownFields, false) || schema.XEmbeddedResource
	if isOpen || len(schema.Properties) == 0 && namesObject.MatchString(field) {
		found.Insert(path)
	}
	for name, part := range schema.Properties {
		found = found.Union(referencesIn(path+"."+name, name, &part))
	}
	return found
}

// TestReferencesInSchemas holds the walk itself: what it does not find, nobody decides about.
func TestReferencesInSchemas(t *testing.T) {
	schema := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(`
properties:
  secretRef: {properties: {name: {type: string}, namespace: {type: string}, key: {type: string}}}
  clusterNames: {type: array, items: {type: string}}
  items: {type: array, items: {type: array, items: {properties: {ref: {type: string}}}}}
  byZone: {additionalProperties: {type: array, items: {properties: {bucketName: {type: string}}}}}
  names: {additionalProperties: {type: string}}
  value: {x-kubernetes-preserve-unknown-fields: true}
  weightPreference: {type: string}
  objectReference: {type: string}
  replicas: {type: integer}
`), schema); err != nil {
		t.Fatal(err)
	}
	want := sets.New("K.secretRef.name", "K.secretRef.namespace", "K.clusterNames[]", "K.items[][].ref",
		"K.byZone{}[].bucketName", "K.names{}", "K.value", "K.objectReference")
	if got := referencesIn("K", "k", schema); !got.Equal(want) {
		t.Errorf("found %v, want %v", sets.List(got), sets.List(want))
	}
}

// columns of a line: the decision, kinds, a path in all of them, and the tests that try it.
const columns = "decision Kind,Kind path [test,test]"

// decision is what is said about a field.
type decision struct{ word, tests string }

// readKindDecisions reads a table of decisions about kinds, by <kind>.<path>.
func readKindDecisions(t *testing.T, file string) map[string]decision {
	t.Helper()
	decided := map[string]decision{}
	for _, line := range linesOf(t, file) {
		words := strings.Fields(line)
		if len(words) < 3 || len(words) > 4 {
			t.Fatalf("testdata/%s: %q is no line of the form %s", file, line, columns)
		}
		said := decision{word: words[0], tests: strings.Join(words[3:], "")}
		for _, kind := range strings.Split(words[1], ",") {
			field := kind + "." + words[2]
			if _, twice := decided[field]; twice {
				t.Errorf("testdata/%s: %s is decided twice", file, field)
			}
			decided[field] = said
		}
	}
	return decided
}

// checkDecisions holds a table of decisions against the fields that there are. That something is checked is said
// together with the test that tries it, which docs/security.md has, too; package test/attack finds out whether there is
// such a test.
func checkDecisions(t *testing.T, file string, found sets.Set[string], words ...string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	decided := readKindDecisions(t, file)
	if len(found) == 0 {
		t.Fatal("no fields found: have the definitions moved?")
	}
	for field := range found {
		if _, ok := decided[field]; !ok {
			t.Errorf("%s names another object, or may hold what does: decide in testdata/%s who may reach what by it",
				field, file)
		}
	}
	for field, said := range decided {
		needsTest := said.word == "checked" || said.word == "reader"
		switch {
		case !found.Has(field):
			t.Errorf("testdata/%s: there is no field %s any more", file, field)
		case !sets.New(words...).Has(said.word):
			t.Errorf("testdata/%s: %s: %q is no decision, only %v are", file, field, said.word, words)
		case needsTest != (said.tests != ""):
			t.Errorf("testdata/%s: %s: only a field that is checked, or held to readers, needs a test; it has %q", file,
				field, said.tests)
		}
		for _, test := range strings.Split(said.tests, ",") {
			if test != "" && !strings.Contains(string(page), "`"+test+"`") {
				t.Errorf("testdata/%s: %s: docs/security.md has no %s", file, field, test)
			}
		}
	}
}
