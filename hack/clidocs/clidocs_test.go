package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trellis-garden/trellis/pkg/trellisctl"
	"github.com/trellis-garden/trellis/pkg/trellisctl/reference"
)

// What is committed is what the commands say.
func TestReferenceIsCurrent(t *testing.T) {
	const folder = "../../docs/trellisctl"
	pages := reference.Markdown(trellisctl.NewCommand())
	for name, want := range pages {
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(got) != want {
			t.Errorf("%s is not what the commands say (%v): run make generate", name, err)
		}
	}
	found, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	if want := slices.Sorted(maps.Keys(pages)); !slices.Equal(found, want) {
		t.Errorf("got pages %v, want %v", found, want)
	}
}
