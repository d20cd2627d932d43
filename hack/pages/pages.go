// Package pages writes references: folders of pages in Markdown that are made anew as a whole.
package pages

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Main is a program that writes the pages of a reference into the folder that its only argument names. The pages are
// known by the names of their files. It does not return.
func Main(program string, pages func() map[string]string) {
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "usage: %s <folder>\n", program)
		os.Exit(2)
	}
	if err := Write(os.Args[1], pages()); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Write replaces the pages in a folder, and makes the folder if there is none. Files that are no Markdown stay.
func Write(folder string, pages map[string]string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		return err
	}
	for _, page := range old {
		if err := os.Remove(page); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(pages[name]), 0o644); err != nil {
			return err
		}
	}
	return nil
}
