package images

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trellis-garden/trellis/pkg/imagevector"
)

// Every folder of an extension is in the list, and has what the list promises: a chart, a registration, a program, and
// an image in the vector.
func TestExtensionsAreWhole(t *testing.T) {
	const root = "../.."
	folders, err := filepath.Glob(filepath.Join(root, "extensions", "*", "charts"))
	if err != nil || len(folders) != len(Extensions) {
		t.Errorf("%d extensions are listed, there are %q (%v)", len(Extensions), folders, err)
	}
	vector, err := imagevector.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range Extensions {
		if !slices.Contains(folders, filepath.Join(root, e.Dir, "charts")) {
			t.Errorf("%s has no folder %s with charts", e.Name, e.Dir)
		}
		for _, part := range []string{
			"charts/" + e.Name + "/Chart.yaml", "example/controller-registration.yaml", "cmd/" + e.Name + "/main.go",
		} {
			if _, err := os.Stat(filepath.Join(root, e.Dir, part)); err != nil {
				t.Errorf("%s: %v", e.Name, err)
			}
		}
		if _, err := vector.Find(e.Name, imagevector.Version("1.36.3")); err != nil {
			t.Errorf("charts/images.yaml: %v", err)
		}
	}
}

// Adding an extension to this repository is its folder and three files. A list of extensions somewhere else would be
// one more to remember.
func TestAnExtensionIsNamedInThreeFiles(t *testing.T) {
	const root = "../.."
	named := []string{"charts/images.yaml", "docs/security-pods.md", "pkg/images/programs.go"}
	// It has extensions as examples.
	const guide = "docs/extending.md"
	for _, name := range []string{"networking-flannel", "os-debian"} {
		i := slices.IndexFunc(Extensions, func(e Extension) bool { return e.Name == name })
		if i < 0 {
			t.Fatalf("%s is no extension", name)
		}
		for _, path := range sourcesWith(t, root, name) {
			if !slices.Contains(named, path) && path != guide && !strings.HasPrefix(path, Extensions[i].Dir+"/") {
				t.Errorf("%s names the extension %s; docs/extending.md promises that only %q do", path, name, named)
			}
		}
	}
}

// sourcesWith lists the files of the repository with a text, but tests and what is built.
func sourcesWith(t *testing.T, root, text string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (relative == "test" || relative == "bin" ||
			(strings.HasPrefix(entry.Name(), ".") && relative != ".")):
			return fs.SkipDir
		case !slices.Contains([]string{".go", ".yaml", ".sh", ".md", ".txt"}, filepath.Ext(path)) &&
			entry.Name() != "Makefile", strings.HasSuffix(path, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(data), text) {
			found = append(found, filepath.ToSlash(relative))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
