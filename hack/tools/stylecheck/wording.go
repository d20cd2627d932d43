package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

var (
	// failing says of an error that it is one.
	failing = regexp.MustCompile(`(?i)\b(failed to|unable to|could not)\b|^(error|failed|failure)\b`)
	// mixedCase matches words that are no ordinary ones: kinds, abbreviations, names of variables.
	mixedCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*[A-Z0-9_][A-Za-z0-9_]*\b|^[A-Z]+\b`)
	// plainKinds are the kinds of objects, and names, whose words look like ordinary ones.
	plainKinds = regexp.MustCompile(`^(Bastion|Binding|Cluster|Deployment|Fleet|Gardenlet|Helm|Infrastructure|Ingress|Job|Lease|Machine|Namespace|Network|Node|Pod|` +
		`Project|Quota|Role|Secret|Seed|Service|Shoot|Terraform|Work|Worker)s?\b`)
	// bare matches a verb as it stands in an order, where an error begins or goes on after a colon. Words that are
	// nouns as often (record, release, request) are left out.
	bare = regexp.MustCompile(`(^|: )(add|apply|approve|assign|build|configure|confirm|connect|create|decode|delete|` +
		`enable|encode|find|get|install|list|load|open|parse|prepare|read|remember|remove|replace|set|sign|start|` +
		`stop|update|verify|write) `)
	// verb is one of a format.
	verb = regexp.MustCompile(`%[-+# 0]*(\d+|\*)?(\.(\d+|\*)?)?([a-zA-Z%])`)
)

// wording finds errors that are not worded as the others.
func wording(t tree) []finding {
	var found []finding
	for _, s := range t.sources {
		if s.isTest() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !isFunction(call.Fun, "fmt", "Errorf") && !isFunction(call.Fun, "errors", "New") ||
				len(call.Args) == 0 {
				return true
			}
			if text, ok := constant(call.Args[0]); ok {
				for _, problem := range problems(text, call.Args[1:]) {
					found = append(found, finding{call.Pos(), problem})
				}
			}
			return true
		})
	}
	return found
}

// constant returns the text of a literal, or the beginning of a sum of such.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		return constant(e.X)
	}
	return "", false
}

// problems lists what is wrong with the text of an error.
func problems(text string, arguments []ast.Expr) []string {
	var all []string
	if text != "" && unicode.IsUpper(rune(text[0])) && !mixedCase.MatchString(text) && !plainKinds.MatchString(text) {
		all = append(all, "an error begins with a small letter, or with the kind that it is about")
	}
	if failing.MatchString(text) {
		all = append(all, "an error says what was tried (\"reading X: …\"), not that it failed")
	}
	if strings.TrimRight(text, ".!\n") != text {
		all = append(all, "an error has no period: others are put around it")
	}
	if bare.MatchString(text) && strings.Contains(text, "%w") {
		all = append(all, "an error says what was being done (\"listing X: …\"), not what to do (\"list X\")")
	}
	if swallows(text, arguments) {
		all = append(all, "an error wraps its cause with %w")
	}
	return all
}

// swallows tells whether an argument that is an error is printed and not wrapped.
func swallows(format string, arguments []ast.Expr) bool {
	i := 0
	for _, match := range verb.FindAllStringSubmatch(format, -1) {
		if match[4] == "%" {
			continue
		}
		if i < len(arguments) && match[4] != "w" && match[4] != "T" && isError(arguments[i]) {
			return true
		}
		i++
	}
	return false
}

// isError goes by the name: err, or something that ends in Err, or what such a one says.
func isError(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "err" || strings.HasSuffix(e.Name, "Err")
	case *ast.CallExpr:
		selector, ok := e.Fun.(*ast.SelectorExpr)
		return ok && selector.Sel.Name == "Error" && len(e.Args) == 0 && isError(selector.X)
	}
	return false
}
