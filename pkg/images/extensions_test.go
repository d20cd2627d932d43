package images

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trellis-garden/trellis/pkg/imagevector"
)

// Every folder of an extension is in the list, and has what the list promises: a chart, a registration, a program, and an image in the vector.
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
		for _, part := range []string{"charts/" + e.Name + "/Chart.yaml", "example/controller-registration.yaml", "cmd/" + e.Name + "/main.go"} {
			if _, err := os.Stat(filepath.Join(root, e.Dir, part)); err != nil {
				t.Errorf("%s: %v", e.Name, err)
			}
		}
		if _, err := vector.Find(e.Name, imagevector.Version("1.36.3")); err != nil {
			t.Errorf("charts/images.yaml: %v", err)
		}
	}
}
