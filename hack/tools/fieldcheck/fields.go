package main

import (
	"go/types"
	"reflect"
	"regexp"
	"strings"

	"golang.org/x/tools/go/packages"
)

// apis matches the folders, within the module, of what people write: the groups of the API, the settings of extensions,
// and the configuration of gardenlet.
var apis = regexp.MustCompile(`^(pkg/apis/.*|extensions/[^/]+/pkg/apis|pkg/gardenlet/config)$`)

// asks matches the groups in which gardenlet asks extensions for what a Shoot says: there, setting is acting.
var asks = regexp.MustCompile(`^pkg/apis/extensions/`)

// folder is where a package is within its module.
func folder(p *packages.Package) string {
	if p.Module == nil {
		return ""
	}
	return strings.TrimPrefix(p.PkgPath, p.Module.Path+"/")
}

// wireField is a field that has a name in JSON.
type wireField struct {
	name string
	// isTold is set for what the product tells others: what is found below a status only, and what extensions are
	// asked for.
	isTold bool
}

// fields are those that no code acts upon, as far as is known.
type fields map[*types.Var]*wireField

// declare returns the fields of the wire types of the API.
func declare(loaded []*packages.Package) fields {
	declared := fields{}
	var structs []*types.Named
	for _, p := range loaded {
		path := folder(p)
		if !apis.MatchString(path) {
			continue
		}
		found := declareStructs(p.Types.Scope(), strings.TrimPrefix(path, "pkg/apis/"), declared)
		if !asks.MatchString(path) {
			structs = append(structs, found...)
		}
	}
	for _, structure := range written(structs) {
		for field := range structure.Underlying().(*types.Struct).Fields() {
			if known := declared[field]; known != nil && tagOf(structure, field) != "status" {
				known.isTold = false
			}
		}
	}
	return declared
}

// declareStructs adds the fields of a package's wire types, all as if they were of a status. Embedded metadata has no
// name in JSON.
func declareStructs(scope *types.Scope, path string, declared fields) []*types.Named {
	var structs []*types.Named
	for _, name := range scope.Names() {
		object, isType := scope.Lookup(name).(*types.TypeName)
		if !isType || !object.Exported() {
			continue
		}
		structure, isNamed := object.Type().(*types.Named)
		if !isNamed || !isStruct(structure) {
			continue
		}
		structs = append(structs, structure)
		for field := range structure.Underlying().(*types.Struct).Fields() {
			tag := tagOf(structure, field)
			// What an API answers a list with, whether or not code of ours lists.
			isItems := tag == "items" && strings.HasSuffix(name, "List")
			if tag != "" && tag != "-" && !field.Embedded() && !isItems {
				declared[field] = &wireField{name: path + "." + name + "." + field.Name(), isTold: true}
			}
		}
	}
	return structs
}

// written returns the structs that are found elsewhere than below a status: those that no other one has, and what these
// have.
func written(structs []*types.Named) []*types.Named {
	had := map[*types.Named]bool{}
	for _, structure := range structs {
		for field := range structure.Underlying().(*types.Struct).Fields() {
			if element := elementOf(field.Type()); element != structure {
				had[element] = true
			}
		}
	}
	var result []*types.Named
	seen := map[*types.Named]bool{}
	var visit func(*types.Named)
	visit = func(structure *types.Named) {
		if seen[structure] {
			return
		}
		seen[structure] = true
		result = append(result, structure)
		for field := range structure.Underlying().(*types.Struct).Fields() {
			if element := elementOf(field.Type()); element != nil && tagOf(structure, field) != "status" {
				visit(element)
			}
		}
	}
	for _, structure := range structs {
		// An extension's own status hangs below none in Go: there it is raw JSON.
		if !had[structure] && !strings.HasSuffix(structure.Obj().Name(), "Status") {
			visit(structure)
		}
	}
	return result
}

// elementOf is the struct that a field holds: itself, behind a pointer, or in lists and maps. It is nil for others.
func elementOf(held types.Type) *types.Named {
	switch t := types.Unalias(held).(type) {
	case *types.Named:
		if isStruct(t) {
			return t.Origin()
		}
		if _, isBasic := t.Underlying().(*types.Basic); !isBasic {
			return elementOf(t.Underlying())
		}
	case *types.Pointer:
		return elementOf(t.Elem())
	case *types.Slice:
		return elementOf(t.Elem())
	case *types.Map:
		return elementOf(t.Elem())
	}
	return nil
}

func isStruct(t types.Type) bool {
	_, is := t.Underlying().(*types.Struct)
	return is
}

// tagOf is the name of a field in JSON.
func tagOf(structure *types.Named, field *types.Var) string {
	underlying := structure.Underlying().(*types.Struct)
	for i := range underlying.NumFields() {
		if underlying.Field(i) == field {
			tag, _, _ := strings.Cut(reflect.StructTag(underlying.Tag(i)).Get("json"), ",")
			return tag
		}
	}
	return ""
}
