package components

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// docs/adding-a-component.md promises that a component is its own package, its line in the list, its image, and a row
// of each table of docs/ that it does not pass without. Another place that names it would be one more to remember.
func TestAComponentIsNamedInItsLine(t *testing.T) {
	for pkg, image := range map[string]string{
		"kubescheduler": "kube-scheduler", "clusterautoscaler": "cluster-autoscaler", "coredns": "coredns",
		"apiserverproxy": "",
	} {
		importPath := `"github.com/trellis-garden/trellis/pkg/component/` + pkg + `"`
		var found []string
		eachSource(t, "../../../..", func(path, text string) {
			named := strings.Contains(text, importPath) ||
				image != "" && strings.Contains(text, `Images["`+image+`"]`)
			if named && !strings.HasPrefix(path, "pkg/component/"+pkg+"/") {
				found = append(found, path)
			}
		})
		if want := []string{"pkg/gardenlet/shoot/components/components.go"}; !slices.Equal(found, want) {
			t.Errorf("%s is named in %q, want only %q", pkg, found, want)
		}
	}
}

// eachSource calls f with each file of the repository's Go code that is no test.
func eachSource(t *testing.T, root string, f func(path, text string)) {
	t.Helper()
	for _, dir := range []string{"cmd", "extensions", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, path)
			f(filepath.ToSlash(relative), string(text))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
