package main

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// plumbing matches the names of files within the API's packages that handle every field without acting on any.
var plumbing = regexp.MustCompile(
	`^(zz_generated.*|generated\.pb|(.*_)?(defaults|validation|warnings)|conversion|protobuf)\.go$`)

// refusals matches those that refuse what is not offered: a field that is refused acts.
var refusals = regexp.MustCompile(`^(.*_)?offer\.go$`)

// looks matches the files of the product that only check, or show to people: what they name acts upon nothing else.
var looks = regexp.MustCompile(`/pkg/(trellisctl/.*|apiserver/admission/.*|apiserver/registry/columns.*|` +
	`federation/(admission|plan)/.*)\.go$`)

// idleFields returns the fields of the API's types that code of the given packages does not act upon, sorted.
func idleFields(root string, patterns []string) ([]string, error) {
	loaded, err := packages.Load(&packages.Config{
		Dir: root, Mode: packages.LoadSyntax | packages.NeedModule, Fset: token.NewFileSet(),
	}, patterns...)
	if err != nil {
		return nil, err
	}
	if packages.PrintErrors(loaded) > 0 {
		return nil, errors.New("the code does not compile")
	}
	idle := declare(loaded)
	c := code{idle: idle, uncalled: map[*types.Func]function{}, called: map[*types.Func]bool{},
		dispatched: map[string]bool{}}
	for _, p := range loaded {
		for _, file := range p.Syntax {
			c.read(p, file)
		}
	}
	names := make([]string, 0, len(idle))
	for _, field := range idle {
		names = append(names, field.name)
	}
	slices.Sort(names)
	return names, nil
}

// code is what has been read.
type code struct {
	// idle are the fields that nothing read acts upon.
	idle fields
	// uncalled are functions of the API's packages, most of them helpers of validation. They count when code that
	// counts calls them.
	uncalled map[*types.Func]function
	// called are functions that were called before they were read.
	called map[*types.Func]bool
	// dispatched are the names of interfaces' methods that were called.
	dispatched map[string]bool
}

// function is one that has been declared.
type function struct {
	info        *types.Info
	declaration *ast.FuncDecl
}

// read reads a file, unless it only handles, checks or shows fields.
func (c *code) read(p *packages.Package, file *ast.File) {
	path := p.Fset.Position(file.Package).Filename
	name, inAPI := filepath.Base(path), apis.MatchString(folder(p))
	if inAPI && plumbing.MatchString(name) || looks.MatchString(path) {
		return
	}
	refuses := inAPI && refusals.MatchString(name)
	for _, declaration := range file.Decls {
		f, isFunction := declaration.(*ast.FuncDecl)
		if !isFunction {
			c.strike(p.TypesInfo, declaration)
			continue
		}
		object := p.TypesInfo.Defs[f.Name].(*types.Func)
		switch {
		case refuses:
			c.strike(p.TypesInfo, f)
		case validates(object):
		case inAPI && !c.calls(object):
			c.uncalled[object] = function{p.TypesInfo, f}
		default:
			c.strike(p.TypesInfo, f)
		}
	}
}

// calls says whether what was read before calls the function.
func (c *code) calls(f *types.Func) bool {
	return c.called[f] || f.Signature().Recv() != nil && c.dispatched[f.Name()]
}

// validates says whether a function returns mistakes in fields.
func validates(f *types.Func) bool {
	for result := range f.Signature().Results().Variables() {
		held := types.Unalias(result.Type())
		if pointer, isPointer := held.(*types.Pointer); isPointer {
			held = pointer.Elem()
		}
		named, isNamed := held.(*types.Named)
		if isNamed && named.Obj().Pkg() != nil && strings.HasSuffix(named.Obj().Pkg().Path(), "/validation/field") &&
			slices.Contains([]string{"ErrorList", "Error"}, named.Obj().Name()) {
			return true
		}
	}
	return false
}

// strike takes the fields that a part of the code acts upon out of the idle ones, and goes on with the functions that
// it calls.
func (c *code) strike(info *types.Info, part ast.Node) {
	set := map[*ast.Ident]bool{}
	ast.Inspect(part, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.AssignStmt:
			for i, target := range n.Lhs {
				noteSet(target, set)
				if len(n.Lhs) == len(n.Rhs) {
					noteSet(appendedTo(info, target, n.Rhs[i]), set)
				}
			}
		case *ast.CallExpr:
			c.convert(info, n)
		case *ast.IncDecStmt:
			noteSet(n.X, set)
		case *ast.KeyValueExpr:
			if key, isName := n.Key.(*ast.Ident); isName {
				set[key] = true
			}
		case *ast.Ident:
			c.use(info.Uses[n], set[n])
		}
		return true
	})
}

// use notes that code names an object, to set it or to read it.
func (c *code) use(object types.Object, isSet bool) {
	switch o := object.(type) {
	case *types.Var:
		if field := c.idle[o.Origin()]; field != nil && (field.isTold || !isSet) {
			delete(c.idle, o.Origin())
		}
	case *types.Func:
		if receiver := o.Signature().Recv(); receiver != nil && types.IsInterface(receiver.Type()) {
			c.useImplementations(o.Name())
			return
		}
		f, uncalled := c.uncalled[o.Origin()]
		if !uncalled {
			c.called[o.Origin()] = true
			return
		}
		delete(c.uncalled, o.Origin())
		c.strike(f.info, f.declaration)
	}
}

// convert notes that a struct is made of another one, field by field.
func (c *code) convert(info *types.Info, call *ast.CallExpr) {
	target := info.Types[call.Fun]
	if !target.IsType() || len(call.Args) != 1 {
		return
	}
	to, isToStruct := target.Type.Underlying().(*types.Struct)
	from, isFromStruct := info.TypeOf(call.Args[0]).Underlying().(*types.Struct)
	if !isToStruct || !isFromStruct {
		return
	}
	for i := range to.NumFields() {
		c.use(to.Field(i), true)
		c.use(from.Field(i), false)
	}
}

// useImplementations takes a call of an interface's method for one of every method that has its name.
func (c *code) useImplementations(method string) {
	c.dispatched[method] = true
	for f, known := range maps.Clone(c.uncalled) {
		if f.Name() == method && f.Signature().Recv() != nil {
			delete(c.uncalled, f)
			c.strike(known.info, known.declaration)
		}
	}
}

// noteSet notes the names of the fields on the way to what is assigned: setting a.b.c reads neither.
func noteSet(target ast.Expr, set map[*ast.Ident]bool) {
	for {
		switch t := target.(type) {
		case *ast.SelectorExpr:
			set[t.Sel] = true
			target = t.X
		case *ast.IndexExpr:
			target = t.X
		case *ast.StarExpr:
			target = t.X
		case *ast.ParenExpr:
			target = t.X
		default:
			return
		}
	}
}

// appendedTo is the list that is appended to, where the result replaces it, and nil otherwise.
func appendedTo(info *types.Info, target, value ast.Expr) ast.Expr {
	call, isCall := value.(*ast.CallExpr)
	if !isCall || len(call.Args) == 0 {
		return nil
	}
	name, isName := call.Fun.(*ast.Ident)
	if !isName || info.Uses[name] != types.Universe.Lookup("append") {
		return nil
	}
	list, isField := call.Args[0].(*ast.SelectorExpr)
	replaced, replacesField := target.(*ast.SelectorExpr)
	if !isField || !replacesField || info.Uses[list.Sel] != info.Uses[replaced.Sel] {
		return nil
	}
	return list
}
