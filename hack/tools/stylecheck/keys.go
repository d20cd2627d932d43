package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

var (
	// keyPattern is the form of keys of labels, annotations, taints and finalizers.
	keyPattern = regexp.MustCompile(`^([a-z0-9-]+\.)+(cloud|garden|io|com)/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9-])?$`)
	// versionPattern is that of the API versions, which are no keys.
	versionPattern = regexp.MustCompile(`/v\d+((alpha|beta)\d+)?$`)
)

// literal is where a key is written out.
type literal struct {
	source source
	pos    token.Pos
}

// keyUse is all that the program says about a key.
type keyUse struct {
	// constant of pkg/apis that has it, if one does.
	constant *keyConstant
	// places where it is written out, outside of pkg/apis.
	places []literal
}

// keyConstant is an exported constant of pkg/apis.
type keyConstant struct {
	// path of its package, and its name.
	path, name string
}

// keyUses collects the keys. Tests may write them out: they say what others rely on.
func keyUses(t tree) map[string]*keyUse {
	uses := map[string]*keyUse{}
	of := func(key string) *keyUse {
		if uses[key] == nil {
			uses[key] = &keyUse{}
		}
		return uses[key]
	}
	for _, s := range t.sources {
		switch {
		case s.isTest() || strings.HasPrefix(s.path, "hack/"):
		case strings.HasPrefix(s.path, "pkg/apis/"):
			for key, name := range constants(s.file) {
				of(key).constant = &keyConstant{module + "/" + s.folder(), name}
			}
		default:
			for key, positions := range literals(s.file) {
				for _, pos := range positions {
					of(key).places = append(of(key).places, literal{s, pos})
				}
			}
		}
	}
	return uses
}

// keys finds keys that are written out in two packages, that pkg/apis has a constant for, or that are a constant of
// another process.
func keys(t tree) []finding {
	found := sharedKeys(t)
	for key, use := range keyUses(t) {
		folders := map[string]bool{}
		for _, l := range use.places {
			folders[l.source.folder()] = true
		}
		text := fmt.Sprintf("%q is written out in %d packages: make it one constant, in pkg/apis if processes share it",
			key, len(folders))
		if use.constant != nil {
			text = fmt.Sprintf("%q is %s of %s: use that", key, use.constant.name, use.constant.path)
		} else if len(folders) < 2 {
			continue
		}
		for _, l := range use.places {
			found = append(found, finding{l.pos, text})
		}
	}
	return found
}

// constants returns the names of a file's exported constants that are keys.
func constants(file *ast.File) map[string]string {
	all := map[string]string{}
	eachConstant(file, func(name, value string) {
		if isKey(value) {
			all[value] = name
		}
	})
	return all
}

// literals returns the keys that are written out in a file.
func literals(file *ast.File) map[string][]token.Pos {
	all := map[string][]token.Pos{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && isKey(text) {
				all[text] = append(all[text], n.Pos())
			}
		}
		return true
	})
	return all
}

func isKey(text string) bool {
	return keyPattern.MatchString(text) && !versionPattern.MatchString(text)
}
