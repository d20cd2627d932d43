// Package attack holds the threat model of docs/security.md and the tests of attacks together. The attacks lie beside
// the environments that they need, in files called attack_*_test.go: those of one environment share it.
package attack

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	root = "../.."
	page = "docs/security.md"
)

// testName is how tests stand in the page.
var testName = regexp.MustCompile("`(Test[A-Za-z0-9_]+|Fuzz[A-Za-z0-9_]+)`")

// rows are those of the page's table of attacks, by their cells.
func rows(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	var result [][]string
	_, attacks, _ := strings.Cut(string(text), "\n## Attacks\n")
	for line := range strings.Lines(attacks) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| who |") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		result = append(result, cells)
	}
	return result
}

// tests are the names of all tests of the tree, with the files that they are in.
func tests(t *testing.T) map[string]string {
	t.Helper()
	result := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root &&
			(strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"bin", "node_modules"}, entry.Name())):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil {
				result[function.Name.Name] = strings.TrimPrefix(path, root+"/")
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// Every attack that the page tells of is tried, and every attack that is tried stands on the page.
func TestPageAndAttacksAgree(t *testing.T) {
	all := tests(t)
	told := map[string]bool{}
	for _, row := range rows(t) {
		names := testName.FindAllStringSubmatch(row[len(row)-1], -1)
		if len(names) == 0 {
			t.Errorf("%s: no test shows %q", page, row[0])
		}
		for _, match := range names {
			told[match[1]] = true
			if all[match[1]] == "" {
				t.Errorf("%s: %q: there is no %s", page, row[0], match[1])
			}
		}
	}
	for name, file := range all {
		if strings.HasPrefix(name, "TestAttack") && !told[name] {
			t.Errorf("%s: %s is not in %s", file, name, page)
		}
	}
}
