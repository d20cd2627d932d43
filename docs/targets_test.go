package docs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var (
	// helped is a target of the Makefile that `make help` shows.
	helped = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):[^#\n]*## `)
	// told is one that a page names.
	told = regexp.MustCompile("`make ([a-z][a-z0-9-]*)")
)

// README.md tells of each target of the Makefile that is for people, and no page of one that is not there.
func TestTargetsAreTold(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, match := range helped.FindAllStringSubmatch(string(text), -1) {
		targets[match[1]] = true
	}
	left := maps.Clone(targets)
	delete(left, "help")
	for path, page := range pages(t) {
		for _, match := range told.FindAllStringSubmatch(page, -1) {
			if !targets[match[1]] {
				t.Errorf("%s: there is no `make %s` that `make help` shows", path, match[1])
			}
			if path == "README.md" {
				delete(left, match[1])
			}
		}
	}
	if len(left) > 0 || len(targets) == 0 {
		t.Errorf("README.md does not tell of %v", left)
	}
}
