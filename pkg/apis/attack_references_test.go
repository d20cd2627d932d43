package apis_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/trellis-garden/trellis/pkg/apis/generated/openapi"
)

// gardenModels begins the names of the definitions of the garden's kinds.
const gardenModels = "cloud.gardener."

// namesObject matches the last part of the names of fields that name another object, or give access to something.
var namesObject = regexp.MustCompile(`(?i:refs?|names?|resources|kubeconfigs?|credentials|secrets?|namespace|url|overrides|growth)$|(^r|R)eference$`)

// referenceTypes are the types of fields that name another object, whatever they are called.
var referenceTypes = sets.New("ObjectReference", "LocalObjectReference", "SecretReference",
	"CrossVersionObjectReference", "TypedLocalObjectReference")

// decisions are what may be said about a field.
var decisions = sets.New("reader", "namespace", "checked", "operator", "seed", "garden", "nothing")

// TestAttackReferences holds all fields by which somebody could reach what is another's against the table of decisions
// about them: a new field needs one.
func TestAttackReferences(t *testing.T) {
	decided, found := readDecisions(t), referenceFields()
	if len(found) == 0 {
		t.Fatal("no definitions found: have their names changed?")
	}
	for field := range found {
		if _, ok := decided[field]; !ok {
			t.Errorf("%s names another object: decide in testdata/references.txt who may reach what by it", field)
		}
	}
	for field, decision := range decided {
		if !found.Has(field) {
			t.Errorf("testdata/references.txt: there is no field %s any more", field)
		}
		if !decisions.Has(decision) {
			t.Errorf("testdata/references.txt: %s: %q is no decision, only %v are", field, decision,
				sets.List(decisions))
		}
	}
}

// referenceFields returns the fields of all kinds that name another object, as <group>.<version>.<type>.<field>.
func referenceFields() sets.Set[string] {
	found := sets.New[string]()
	for name, definition := range openapi.GetOpenAPIDefinitions(func(path string) spec.Ref {
		return spec.MustCreateRef(path)
	}) {
		if !strings.HasPrefix(name, gardenModels) {
			continue
		}
		for field, schema := range definition.Schema.Properties {
			if namesObject.MatchString(field) || referenceTypes.Has(referredType(&schema)) {
				found.Insert(strings.TrimPrefix(name, gardenModels) + "." + field)
			}
		}
	}
	return found
}

// referredType returns the name, without its package, of the type of a field, or of its items.
func referredType(schema *spec.Schema) string {
	path := schema.Ref.String()
	for i := range schema.AllOf {
		path += schema.AllOf[i].Ref.String()
	}
	if schema.Items != nil && schema.Items.Schema != nil && path == "" {
		return referredType(schema.Items.Schema)
	}
	return path[strings.LastIndex(path, ".")+1:]
}

func readDecisions(t *testing.T) map[string]string {
	t.Helper()
	decided := map[string]string{}
	for _, line := range linesOf(t, "references.txt") {
		decision, field, _ := strings.Cut(line, " ")
		decided[strings.TrimSpace(field)] = decision
	}
	return decided
}

// linesOf are those of a table that hold a decision.
func linesOf(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}
