package apis_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// kubectl explain teaches: every kind, and every field that goes over the wire, has a description of its own, with its
// default.
func TestEveryFieldHasADescription(t *testing.T) {
	folders, err := filepath.Glob("*/v*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no API groups found: %v", err)
	}
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) {
			for _, file := range parseFolder(t, folder) {
				for _, declaration := range file.Decls {
					if general, ok := declaration.(*ast.GenDecl); ok && general.Tok == token.TYPE {
						checkTypes(t, general)
					}
				}
			}
		})
	}
}

func parseFolder(t *testing.T, folder string) []*ast.File {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
			strings.HasPrefix(name, "zz_generated") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

func checkTypes(t *testing.T, declaration *ast.GenDecl) {
	t.Helper()
	for _, spec := range declaration.Specs {
		named, ok := spec.(*ast.TypeSpec)
		if !ok || !named.Name.IsExported() {
			continue
		}
		comment := named.Doc
		if comment == nil {
			comment = declaration.Doc
		}
		if description(comment) == "" {
			t.Errorf("type %s has no description", named.Name)
		}
		if structure, ok := named.Type.(*ast.StructType); ok {
			checkFields(t, named.Name.Name, structure)
		}
	}
}

func checkFields(t *testing.T, owner string, structure *ast.StructType) {
	t.Helper()
	for _, field := range structure.Fields.List {
		name, text := wireName(field), description(field.Doc)
		switch value := defaultValue(field.Doc); {
		case name == "":
		case text == "":
			t.Errorf("%s: field %s has no description: write a comment above it", owner, name)
		case !strings.Contains(text, value):
			t.Errorf("%s: the description of field %s does not tell its default, %s", owner, name, value)
		}
	}
}

// defaultValue is what the API server fills in, by the field's marker; empty if it has none.
func defaultValue(comment *ast.CommentGroup) string {
	if comment == nil {
		return ""
	}
	for _, line := range comment.List {
		if value, found := strings.CutPrefix(line.Text, "// +kubebuilder:default="); found {
			return strings.Trim(value, `"`)
		}
	}
	return ""
}

// wireName is the name of a field in JSON; empty when it has none of its own.
func wireName(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	if name == "-" {
		return ""
	}
	return name
}

// description is a comment without its markers.
func description(comment *ast.CommentGroup) string {
	if comment == nil {
		return ""
	}
	var lines []string
	for line := range strings.Lines(comment.Text()) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "+") {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, " "))
}
