// apidocs writes the reference of the garden's API: a page in Markdown per group and version, made from the same OpenAPI
// definitions that the garden serves.
//
//	apidocs <folder>
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/trellis-garden/trellis/pkg/apis/generated/openapi"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: apidocs <folder>")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "apidocs:", err)
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
	for name, content := range newReference(definitions()).pages() {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// definitions returns the schemas by model name. References are model names behind modelReference.
func definitions() map[string]spec.Schema {
	schemas := map[string]spec.Schema{}
	for name, definition := range openapi.GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef(modelReference + path) }) {
		schemas[name] = definition.Schema
	}
	return schemas
}
