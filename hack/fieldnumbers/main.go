// fieldnumbers gives the fields of the garden's API their protobuf numbers: it writes a protobuf tag to every field
// that has none. Numbers come from pkg/apis/fieldnumbers.txt, which holds those of the published API and those that
// were given here; a field that is in neither gets the next number of its message from 1001 on, and is added to the
// file. Nothing is ever taken out of the file, so that no number is used twice.
//
// The tag names number and field only; go-to-protobuf completes it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// apis is the folder of the API's types, as seen from the repository's.
const apis = "pkg/apis"

func main() {
	if err := run(apis, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fieldnumbers:", err)
		os.Exit(1)
	}
}

// run numbers the fields in folders below root, such as core/v1beta1.
func run(root string, folders []string) error {
	path := filepath.Join(root, "fieldnumbers.txt")
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	numbers, err := parse(string(content))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, folder := range folders {
		if err := numberFolder(numbers, root, folder); err != nil {
			return err
		}
	}
	return os.WriteFile(path, []byte(numbers.String()), 0o644)
}

func numberFolder(numbers *Numbers, root, folder string) error {
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if !holdsTypes(filepath.Base(file)) {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		tagged, err := tag(numbers, folder, source)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if string(tagged) == string(source) {
			continue
		}
		if err := os.WriteFile(file, tagged, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func holdsTypes(name string) bool {
	return !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "zz_generated.") &&
		!strings.HasPrefix(name, "generated.")
}
