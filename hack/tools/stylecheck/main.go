// stylecheck holds what no compiler and no other linter here looks at: that each thing is done in one way.
//
//	go -C hack/tools build -o stylecheck ./stylecheck && stylecheck [-w] [rule ...]
//
// It runs in the root of the module, over the files that git knows or would. Without rules it holds all:
//
//	keys      a label, annotation or other key of the form domain/name that two packages need is a constant of
//	          pkg/apis, and used as such; so is one, or a user or group domain:name, that a process shares with others
//	names     an imported package has the same name everywhere
//	pointers  a pointer to a value is new(value)
//	errors    errors begin with a small letter or a kind, say what was being done ("listing x: …") and neither what to
//	          do ("list x") nor that something failed, have no period, and wrap their causes
//	tunnels   only the transport of tunnels, and what chooses it, names WireGuard in identifiers
//
// With -w it puts right what breaks names and pointers, and keys where there is a constant.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
)

// module is the import path of this repository's module.
const module = "github.com/trellis-garden/trellis"

// generated matches files that no person writes.
var generated = regexp.MustCompile(`(^|/)(zz_generated[^/]*|generated\.pb)\.go$|^pkg/client/`)

// source is a parsed file.
type source struct {
	path string
	file *ast.File
}

func (s source) folder() string { return path.Dir(s.path) }

func (s source) isTest() bool {
	return strings.HasSuffix(s.path, "_test.go") || strings.HasPrefix(s.path, "test/")
}

// finding is something that breaks a rule.
type finding struct {
	pos  token.Pos
	text string
}

// tree is all that is looked at.
type tree struct {
	files   *token.FileSet
	sources []source
	// declared has what each package declares outside of functions.
	declared map[string]map[string]bool
}

// parse adds a file; text is what it holds, nil for what lies at that path.
func (t *tree) parse(name string, text any) error {
	file, err := parser.ParseFile(t.files, name, text, parser.ParseComments)
	if err != nil {
		return err
	}
	s := source{name, file}
	t.sources = append(t.sources, s)
	if t.declared[s.folder()] == nil {
		t.declared[s.folder()] = map[string]bool{}
	}
	for declared := range file.Scope.Objects {
		t.declared[s.folder()][declared] = true
	}
	return nil
}

// rules by their names.
var rules = map[string]func(tree) []finding{
	"keys": keys, "names": names, "pointers": pointers, "errors": wording,
	"tunnels": tunnels,
}

func main() {
	write := flag.Bool("w", false, "put right what breaks names and pointers, and keys where there is a constant")
	flag.Parse()
	broken, err := run(*write, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "stylecheck:", err)
	}
	if err != nil || broken {
		os.Exit(1)
	}
}

func run(write bool, wanted []string) (broken bool, err error) {
	if len(wanted) == 0 {
		wanted = slices.Sorted(maps.Keys(rules))
	}
	for _, name := range wanted {
		if rules[name] == nil {
			return false, fmt.Errorf("no rule %q", name)
		}
	}
	if write {
		if err := putRight(); err != nil {
			return false, err
		}
	}
	t, err := read()
	if err != nil {
		return false, err
	}
	for _, name := range wanted {
		found := rules[name](t)
		slices.SortFunc(found, func(a, b finding) int { return cmp.Compare(a.pos, b.pos) })
		for _, f := range found {
			fmt.Printf("%s: %s (%s)\n", t.files.Position(f.pos), f.text, name)
		}
		broken = broken || len(found) > 0
	}
	return broken, nil
}

// read parses what git knows or would, except generated files.
func read() (tree, error) {
	t := tree{files: token.NewFileSet(), declared: map[string]map[string]bool{}}
	list, err := exec.Command("git", "ls-files", "-co", "--exclude-standard", "*.go").Output()
	if err != nil {
		return t, fmt.Errorf("listing files: %w", err)
	}
	for _, name := range strings.Fields(string(list)) {
		if generated.MatchString(name) {
			continue
		}
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) { // deleted, and not yet committed
			continue
		}
		if err := t.parse(name, nil); err != nil {
			return t, fmt.Errorf("parsing: %w", err)
		}
	}
	return t, nil
}
