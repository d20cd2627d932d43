// fieldcheck lists fields of the API that no code acts upon: they are decoded, defaulted, validated and stored, and
// then nothing happens. Every field that is accepted has an effect or is refused with a reason, so each one that it
// lists is a bug, unless the file of exceptions says where the field acts. It runs in the root of the module:
//
//	go -C hack/tools build -o fieldcheck ./fieldcheck && fieldcheck hack/fieldcheck.txt
//
// A field acts where code outside of the API's own plumbing names it: reads it, sets it, or gives it in a literal.
// Plumbing is generated code and the files that default, validate or convert; those that refuse (*_offer.go) act.
// Admission, columns of tables and trellisctl do not count. An exception is a line "core/v1beta1.Shoot.Spec: reason"; a
// pattern that ends in "*" stands for all fields that begin with it. Exceptions that nothing needs are errors as well.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// apis is the import path below which the API's types live, within the module.
const apis = "/pkg/apis/"

// groups are the API groups that people write: their types are looked at.
var groups = []string{
	"apps", "authentication", "autoscaling", "cluster", "config", "core", "operations", "policy", "security",
	"seedmanagement", "work",
}

// programs are the packages whose code counts.
var programs = []string{"./pkg/...", "./cmd/...", "./extensions/..."}

// plumbing matches the names of files within the API's packages that handle every field without acting on any.
var plumbing = regexp.MustCompile(`^(zz_generated.*|generated\.pb|.*_defaults|.*_validation|.*_warnings|defaults|validation|warnings|conversion|protobuf)\.go$`)

// looks matches the files of the product that only check, or show to people: what they name acts upon nothing else.
var looks = regexp.MustCompile(`/pkg/(trellisctl/.*|apiserver/admission/.*|apiserver/registry/columns.*|federation/admission/.*)\.go$`)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fieldcheck:", err)
		os.Exit(1)
	}
}

func run(arguments []string, out io.Writer) error {
	if len(arguments) != 1 {
		return errors.New("want one argument: the file of exceptions")
	}
	exceptions, err := readExceptions(arguments[0])
	if err != nil {
		return err
	}
	idle, err := idleFields(programs)
	if err != nil {
		return err
	}
	complaints := 0
	for _, field := range idle {
		if !exceptions.allow(field) {
			fmt.Fprintf(out, "%s: no code acts on this field: let it have its effect, refuse it, or say in %s where "+
				"it acts\n", field, arguments[0])
			complaints++
		}
	}
	for _, e := range exceptions {
		if !e.used {
			fmt.Fprintf(out, "%s:%d: %s: there is no such idle field: remove the line\n", arguments[0], e.line,
				e.pattern)
			complaints++
		}
	}
	if complaints > 0 {
		return fmt.Errorf("%d complaints", complaints)
	}
	return nil
}

// exception is a line of the file of exceptions.
type exception struct {
	pattern string
	line    int
	used    bool
}

type exceptionList []*exception

// readExceptions reads the file of exceptions. Empty lines and those that begin with "#" are comments.
func readExceptions(path string) (exceptionList, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var list exceptionList
	scanner := bufio.NewScanner(file)
	for line := 1; scanner.Scan(); line++ {
		text := strings.TrimSpace(scanner.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		pattern, reason, found := strings.Cut(text, ": ")
		if !found || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s:%d: want \"field: reason\"", path, line)
		}
		list = append(list, &exception{pattern: pattern, line: line})
	}
	return list, scanner.Err()
}

// allow tells whether an exception names the field, and notes that it is used. Exact names come before patterns, so
// that a pattern does not hide that a line is superfluous.
func (l exceptionList) allow(field string) bool {
	allowed := false
	for _, e := range l {
		prefix, isPattern := strings.CutSuffix(e.pattern, "*")
		if e.pattern == field || isPattern && strings.HasPrefix(field, prefix) {
			e.used, allowed = true, true
		}
	}
	return allowed
}

// idleFields returns the fields of the API's types that code of the given packages does not act upon, sorted.
func idleFields(patterns []string) ([]string, error) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.LoadSyntax | packages.NeedModule,
		Fset: token.NewFileSet(),
	}, patterns...)
	if err != nil {
		return nil, err
	}
	if packages.PrintErrors(loaded) > 0 {
		return nil, errors.New("the code does not compile")
	}
	declared := map[*types.Var]string{}
	for _, p := range loaded {
		if p.Module == nil {
			continue
		}
		folder, isAPI := strings.CutPrefix(p.PkgPath, p.Module.Path+apis)
		if group, _, _ := strings.Cut(folder, "/"); isAPI && slices.Contains(groups, group) {
			declareFields(p, folder, declared)
		}
	}
	for _, p := range loaded {
		inAPI := p.Module != nil && strings.HasPrefix(p.PkgPath, p.Module.Path+apis)
		for _, file := range p.Syntax {
			path := p.Fset.Position(file.Package).Filename
			if name := filepath.Base(path); inAPI && plumbing.MatchString(name) || looks.MatchString(path) {
				continue
			}
			strikeNamed(p.TypesInfo, file, declared)
		}
	}
	idle := make([]string, 0, len(declared))
	for _, name := range declared {
		idle = append(idle, name)
	}
	slices.Sort(idle)
	return idle, nil
}

// declareFields adds the fields of a package's wire types: those that have a name in JSON. Embedded metadata has none.
func declareFields(p *packages.Package, folder string, declared map[*types.Var]string) {
	scope := p.Types.Scope()
	for _, name := range scope.Names() {
		object, isType := scope.Lookup(name).(*types.TypeName)
		if !isType || !object.Exported() {
			continue
		}
		structure, isStruct := object.Type().Underlying().(*types.Struct)
		if !isStruct {
			continue
		}
		for i := range structure.NumFields() {
			tag, _, _ := strings.Cut(reflect.StructTag(structure.Tag(i)).Get("json"), ",")
			// What an API answers a list with, whether or not code of ours lists.
			isItems := tag == "items" && strings.HasSuffix(name, "List")
			if field := structure.Field(i); tag != "" && tag != "-" && !field.Embedded() && !isItems {
				declared[field] = folder + "." + name + "." + field.Name()
			}
		}
	}
}

// strikeNamed takes the fields that a file names out of the declared ones.
func strikeNamed(info *types.Info, file *ast.File, declared map[*types.Var]string) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.SelectorExpr:
			if field, isVar := info.Uses[n.Sel].(*types.Var); isVar {
				delete(declared, field.Origin())
			}
		case *ast.KeyValueExpr:
			if key, isIdent := n.Key.(*ast.Ident); isIdent {
				if field, isVar := info.Uses[key].(*types.Var); isVar {
					delete(declared, field.Origin())
				}
			}
		}
		return true
	})
}
