// linelength lists lines that are longer than 120 columns, a tab counted as four, in Go files, Markdown (.md), and in
// shell scripts and Makefiles, which are all others. It takes the files as arguments:
//
//	go -C hack/tools build -o linelength ./linelength && git ls-files '*.go' '*.md' '*.sh' | xargs linelength
//
// Left alone is what cannot be broken. In Go: lines of a raw string or of a long one without a space, of an import, of
// a field with a tag, markers such as +kubebuilder:…, and whole files that are generated. Elsewhere: lines with a URL,
// lines of a single word, and rows of Markdown's tables. Blocks of code in Markdown are held like its prose.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	most     = 120
	tabWidth = 4
)

func main() {
	failed := false
	for _, path := range os.Args[1:] {
		source, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, "linelength:", err)
			os.Exit(1)
		}
		lines, err := longLines(path, string(source))
		if err != nil {
			fmt.Fprintf(os.Stderr, "linelength: %s: %v\n", path, err)
			os.Exit(1)
		}
		for _, line := range lines {
			fmt.Printf("%s:%d: longer than %d columns\n", path, line, most)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// longLines returns the numbers of the lines of a file that are to be broken.
func longLines(path, source string) ([]int, error) {
	var long []int
	lines := strings.Split(source, "\n")
	for i, line := range lines {
		if columns(line) > most {
			long = append(long, i+1)
		}
	}
	if len(long) == 0 {
		return nil, nil
	}
	if filepath.Ext(path) == ".go" {
		return breakableGo(source, long)
	}
	isMarkdown := filepath.Ext(path) == ".md"
	return slices.DeleteFunc(long, func(number int) bool {
		line := strings.TrimSpace(lines[number-1])
		isRow := isMarkdown && strings.HasPrefix(line, "|")
		return isRow || strings.Contains(line, "://") || len(strings.Fields(line)) < 2
	}), nil
}

// breakableGo returns those of the long lines of a Go file that can be broken.
func breakableGo(source string, long []int) ([]int, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	whole := unbreakable(files, file)
	return slices.DeleteFunc(long, func(number int) bool { return whole[number] }), nil
}

func columns(line string) int {
	return utf8.RuneCountInString(line) + (tabWidth-1)*strings.Count(line, "\t")
}

// unbreakable returns the lines of a file that are as long as they are.
func unbreakable(files *token.FileSet, file *ast.File) map[int]bool {
	lines := map[int]bool{}
	mark := func(node ast.Node) {
		for line := files.Position(node.Pos()).Line; line <= files.Position(node.End()).Line; line++ {
			lines[line] = true
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ImportSpec:
			mark(n)
		case *ast.BasicLit:
			if strings.HasPrefix(n.Value, "`") || n.Kind == token.STRING && !strings.Contains(n.Value, " ") {
				mark(n)
			}
		}
		return true
	})
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if isMarker(comment.Text) {
				mark(comment)
			}
		}
	}
	return lines
}

// isMarker tells whether a comment is for a tool, or has no space where it could be broken.
func isMarker(comment string) bool {
	text := strings.TrimPrefix(comment, "//")
	return strings.HasPrefix(strings.TrimSpace(text), "+") || strings.HasPrefix(text, "go:") ||
		len(strings.Fields(text)) < 2
}
