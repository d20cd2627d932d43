package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module is the API and its frame; tests add the code that acts.
var module = map[string]string{
	"go.mod":                "module example.com/fake\n\ngo 1.26\n",
	"validation/field/f.go": "package field\ntype Error struct{}\ntype ErrorList []*Error\n",
	"pkg/apis/core/v1/thing_types.go": `package v1
type Thing struct {
	Spec   ThingSpec   ` + "`json:\"spec\"`" + `
	Status ThingStatus ` + "`json:\"status\"`" + `
}
type ThingSpec struct {
	Size   int      ` + "`json:\"size\"`" + `
	Parts  []Part   ` + "`json:\"parts\"`" + `
	Labels map[string]string ` + "`json:\"labels\"`" + `
}
type Part struct {
	Name string ` + "`json:\"name\"`" + `
}
type ThingStatus struct {
	Ready bool   ` + "`json:\"ready\"`" + `
	Parts []Part ` + "`json:\"parts\"`" + `
}
`,
}

// idleWith returns the idle fields of the fake module with more files.
func idleWith(t *testing.T, files map[string]string) []string {
	t.Helper()
	root := t.TempDir()
	all := maps.Clone(module)
	maps.Copy(all, files)
	for name, text := range all {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	idle, err := idleFields(root, []string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	return idle
}

const (
	size   = "core/v1.ThingSpec.Size"
	parts  = "core/v1.ThingSpec.Parts"
	labels = "core/v1.ThingSpec.Labels"
	name   = "core/v1.Part.Name"
	ready  = "core/v1.ThingStatus.Ready"
)

// acting is a file of the product.
func acting(body string) string {
	return `package act
import v1 "example.com/fake/pkg/apis/core/v1"
func act(thing *v1.Thing) {
` + body + "\n}\n"
}

func TestWhatActs(t *testing.T) {
	const file = "pkg/act/act.go"
	for title, test := range map[string]struct {
		body  string
		field string
		acts  bool
	}{
		"reading":                           {"println(thing.Spec.Size)", size, true},
		"comparing":                         {"if thing.Spec.Size > 1 { println() }", size, true},
		"setting":                           {"thing.Spec.Size = 1", size, false},
		"counting up":                       {"thing.Spec.Size++", size, false},
		"appending to itself":               {"thing.Spec.Parts = append(thing.Spec.Parts, v1.Part{})", parts, false},
		"appending to another":              {"println(len(append(thing.Spec.Parts, v1.Part{})))", parts, true},
		"a literal":                         {"*thing = v1.Thing{Spec: v1.ThingSpec{Size: 1}}", size, false},
		"setting an entry":                  {`thing.Spec.Labels["a"] = "b"`, labels, false},
		"setting what it holds":             {`thing.Spec.Parts[0].Name = "a"`, parts, false},
		"reading what the target is":        {`thing.Spec.Labels[thing.Spec.Parts[0].Name] = "b"`, name, true},
		"setting in a status":               {"thing.Status.Ready = true", ready, true},
		"a literal of a status":             {"thing.Status = v1.ThingStatus{Ready: true}", ready, true},
		"setting what a spec has as well":   {`thing.Status.Parts = []v1.Part{{Name: "a"}}`, name, false},
		"reading what a status has as well": {"println(thing.Status.Parts[0].Name)", name, true},
	} {
		t.Run(title, func(t *testing.T) {
			idle := idleWith(t, map[string]string{file: acting(test.body)})
			if slices.Contains(idle, test.field) == test.acts {
				t.Errorf("%s acts: want %v; idle are %v", test.field, test.acts, idle)
			}
		})
	}
}

// reads is a function of the API's package that reads the size.
const reads = "package v1\nfunc (s *ThingSpec) Large() bool { return s.Size > 1 }\n"

// refuses is a function of the API's package that finds mistakes in the size.
const refuses = `package v1
import "example.com/fake/validation/field"
func check(spec *ThingSpec) (errs field.ErrorList) {
	if spec.Size > 1 { errs = append(errs, &field.Error{}) }
	return errs
}
`

// checks is a function of the product that finds a mistake in the size.
const checks = `package act
import (
	v1 "example.com/fake/pkg/apis/core/v1"
	"example.com/fake/validation/field"
)
func Check(spec *v1.ThingSpec) *field.Error {
	if spec.Size > 1 { return &field.Error{} }
	return nil
}
`

func TestWhatCounts(t *testing.T) {
	const lookup, body = "pkg/apis/core/v1/lookup.go", "println(thing.Spec.Size)"
	calls := acting("println(thing.Spec.Large())")
	for title, test := range map[string]struct {
		files map[string]string
		acts  bool
	}{
		"the program":             {map[string]string{"pkg/act/act.go": acting(body)}, true},
		"the command line client": {map[string]string{"pkg/trellisctl/get/get.go": acting(body)}, false},
		"a prediction":            {map[string]string{"pkg/federation/plan/plan.go": acting(body)}, false},
		"columns":                 {map[string]string{"pkg/apiserver/registry/columns.go": acting(body)}, false},
		"validation by its name": {map[string]string{
			"pkg/apis/core/v1/thing_validation.go": reads, "pkg/act/act.go": calls,
		}, false},
		"validation by what it returns": {map[string]string{lookup: refuses, "pkg/act/act.go": checks}, false},
		"a refusal":                     {map[string]string{"pkg/apis/core/v1/thing_offer.go": refuses}, true},
		"a helper of validation": {map[string]string{
			lookup: reads, "pkg/apis/core/v1/thing_validation.go": "package v1\nvar large = (*ThingSpec).Large\n",
		}, false},
		"a helper of the program":                   {map[string]string{lookup: reads, "pkg/act/act.go": calls}, true},
		"a helper, read after what it is called by": {map[string]string{lookup: reads, "cmd/act/act.go": calls}, true},
	} {
		t.Run(title, func(t *testing.T) {
			if idle := idleWith(t, test.files); slices.Contains(idle, size) == test.acts {
				t.Errorf("%s acts: want %v; idle are %v", size, test.acts, idle)
			}
		})
	}
}

func TestSettingsOfExtensionsAndGardenletAreLookedAt(t *testing.T) {
	const types = "type Config struct { Size int `json:\"size\"` }\n"
	idle := idleWith(t, map[string]string{
		"extensions/federation/pkg/apis/types.go": "package apis\n" + types,
		"pkg/gardenlet/config/config.go":          "package config\n" + types,
		"pkg/apis/fleet/v1/types.go":              "package v1\n" + types,
		"pkg/act/act.go":                          "package act\n" + types,
	})
	for _, want := range []string{
		"extensions/federation/pkg/apis.Config.Size", "pkg/gardenlet/config.Config.Size", "fleet/v1.Config.Size",
	} {
		if !slices.Contains(idle, want) {
			t.Errorf("%s is missing in %v", want, idle)
		}
	}
	if slices.Contains(idle, "pkg/act.Config.Size") {
		t.Error("a struct outside of the API is taken for a part of it")
	}
}

func TestExceptionsNeedAReasonAndAField(t *testing.T) {
	path := filepath.Join(t.TempDir(), "exceptions.txt")
	for text, want := range map[string]string{
		"# a comment\ncore/v1.Thing.Spec: others read it\n": "",
		"core/v1.Part.*: others read it\n":                  "",
		"core/v1.Thing.Spec\n":                              "want \"field: reason\"",
		"core/v1.Thing.Other: gone\n":                       "core/v1.Thing.Other: there is no such idle field",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out := &bytes.Buffer{}
		exceptions, err := readExceptions(path)
		if err != nil {
			out.WriteString(err.Error())
		}
		exceptions.allow("core/v1.Thing.Spec")
		exceptions.allow("core/v1.Part.Name")
		complainOfUnused(out, path, exceptions)
		if got := out.String(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
