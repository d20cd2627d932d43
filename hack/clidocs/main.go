// clidocs writes the reference of trellisctl: pages in Markdown, made from its commands.
//
//	clidocs <folder>
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/trellis-garden/trellis/pkg/trellisctl"
	"github.com/trellis-garden/trellis/pkg/trellisctl/reference"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: clidocs <folder>")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "clidocs:", err)
		os.Exit(1)
	}
}

// write replaces the pages in a folder.
func write(folder string) error {
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
	for name, content := range reference.Markdown(trellisctl.NewCommand()) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}
