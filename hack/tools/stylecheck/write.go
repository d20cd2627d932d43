package main

import (
	"fmt"
	"go/ast"
	"go/format"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// edit replaces the bytes of a file from begin to end.
type edit struct {
	begin, end int
	text       string
}

// putRight gives imports their names, makes ptr.To what the language has, and uses the constants of keys. Edits are of
// text, so that nothing else changes.
func putRight() error {
	// A name that one import gives up may be what another one waits for.
	for changed := true; changed; {
		t, err := read()
		if err != nil {
			return err
		}
		if changed, err = t.putRight(); err != nil {
			return err
		}
	}
	return nil
}

func (t tree) putRight() (changed bool, err error) {
	wanted := wantedNames(t)
	ofKeys := keyEdits(t, wanted)
	for _, s := range t.sources {
		edits := slices.Concat(renames(t, s, wanted), pointerEdits(t, s.file), ofKeys[s.path])
		if len(edits) == 0 {
			continue
		}
		changed = true
		if err := rewrite(s.path, edits); err != nil {
			return false, fmt.Errorf("%s: %w", s.path, err)
		}
	}
	return changed, nil
}

func rewrite(name string, edits []edit) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	slices.SortFunc(edits, func(a, b edit) int { return b.begin - a.begin })
	for _, e := range edits {
		text = slices.Concat(text[:e.begin], []byte(e.text), text[e.end:])
	}
	if text, err = format.Source(withoutUnused(text)); err != nil {
		return fmt.Errorf("formatting: %w", err)
	}
	return os.WriteFile(name, text, 0o644)
}

func (t tree) edit(from, to ast.Node, text string) edit {
	return edit{t.files.Position(from.Pos()).Offset, t.files.Position(to.End()).Offset, text}
}

// renames gives the imports of a file their wanted names, and those who use them too.
func renames(t tree, s source, wanted map[string]string) []edit {
	var edits []edit
	to := map[string]string{}
	for name, i := range misnamed(t, s, wanted) {
		to[i.name] = name
		text := name + " " + i.spec.Path.Value
		if name == defaultName(i.path) {
			text = i.spec.Path.Value
		}
		edits = append(edits, edit{
			t.files.Position(i.spec.Pos()).Offset, t.files.Position(i.spec.Path.End()).Offset, text,
		})
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := selector.X.(*ast.Ident); ok && id.Obj == nil && to[id.Name] != "" {
				edits = append(edits, t.edit(id, id, to[id.Name]))
			}
		}
		return true
	})
	return edits
}

// pointerEdits makes ptr.To(value) new(value), and ptr.To[T](value) new(T(value)).
func pointerEdits(t tree, file *ast.File) []edit {
	var edits []edit
	for _, call := range pointerCalls(file) {
		begin := t.files.Position(call.Pos()).Offset
		index, typed := call.Fun.(*ast.IndexExpr)
		if !typed {
			edits = append(edits, edit{begin, t.files.Position(call.Lparen).Offset, "new"})
			continue
		}
		first, last := t.files.Position(index.Index.Pos()).Offset, t.files.Position(index.Index.End()).Offset
		edits = append(edits, edit{begin, first, "new("}, edit{last, t.files.Position(index.End()).Offset, ""},
			edit{t.files.Position(call.Rparen).Offset, t.files.Position(call.Rparen).Offset, ")"})
	}
	return edits
}

// usesPointers matches what else ptr has.
var usesPointers = regexp.MustCompile(`\bptr\.[A-Z]`)

// keyEdits uses the constants of pkg/apis for keys that are written out, by file.
func keyEdits(t tree, wanted map[string]string) map[string][]edit {
	edits := map[string][]edit{}
	for key, use := range keyUses(t) {
		for _, l := range use.places {
			if use.constant == nil {
				continue
			}
			name, imports := importing(t, l.source, use.constant.path, wanted)
			begin := t.files.Position(l.pos).Offset
			edits[l.source.path] = append(edits[l.source.path],
				edit{begin, begin + len(strconv.Quote(key)), name + "." + use.constant.name})
			if imports != nil && !slices.Contains(edits[l.source.path], *imports) {
				edits[l.source.path] = append(edits[l.source.path], *imports)
			}
		}
	}
	return edits
}

// importing returns the name that a file knows a package by, and what makes it import that if it does not.
func importing(t tree, s source, importPath string, wanted map[string]string) (string, *edit) {
	name := wanted[importPath]
	var last, lastOwn *ast.ImportSpec
	for _, i := range importsOf(s.file) {
		if i.path == importPath {
			if _, willBe := misnamed(t, s, wanted)[name]; !willBe {
				name = i.name
			}
			return name, nil
		}
		last = i.spec
		if strings.HasPrefix(i.path, module) {
			lastOwn = i.spec
		}
	}
	spec := name + " " + strconv.Quote(importPath)
	switch {
	case lastOwn != nil:
		return name, t.insert(lastOwn, "\n\t"+spec)
	case last != nil:
		return name, t.insert(last, "\n\n\t"+spec)
	}
	return name, t.insert(s.file.Name, "\n\nimport "+spec)
}

func (t tree) insert(after ast.Node, text string) *edit {
	at := t.files.Position(after.End()).Offset
	return &edit{at, at, text}
}

// withoutUnused drops the import of ptr where nothing else of it is used.
func withoutUnused(text []byte) []byte {
	if usesPointers.Match(text) {
		return text
	}
	lines := strings.SplitAfter(string(text), "\n")
	lines = slices.DeleteFunc(lines,
		func(line string) bool { return strings.TrimSpace(line) == `"`+pointerPackage+`"` })
	return []byte(strings.Join(lines, ""))
}
