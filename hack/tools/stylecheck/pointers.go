package main

import (
	"go/ast"
)

// pointerPackage has what new(value) does since Go 1.26.
const pointerPackage = "k8s.io/utils/ptr"

// pointers finds calls of ptr.To.
func pointers(t tree) []finding {
	var found []finding
	for _, s := range t.sources {
		for _, call := range pointerCalls(s.file) {
			found = append(found, finding{call.Pos(), "ptr.To(value) is new(value)"})
		}
	}
	return found
}

// pointerCalls returns the calls of ptr.To in a file.
func pointerCalls(file *ast.File) []*ast.CallExpr {
	name := ""
	for _, i := range importsOf(file) {
		if i.path == pointerPackage {
			name = i.name
		}
	}
	var calls []*ast.CallExpr
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && name != "" && isFunction(call.Fun, name, "To") {
			calls = append(calls, call)
		}
		return true
	})
	return calls
}

// isFunction tells whether an expression is a function of an imported package, with or without type arguments.
func isFunction(fun ast.Expr, pkg, function string) bool {
	if index, ok := fun.(*ast.IndexExpr); ok {
		fun = index.X
	}
	selector, ok := fun.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != function {
		return false
	}
	id, ok := selector.X.(*ast.Ident)
	return ok && id.Name == pkg && id.Obj == nil
}
