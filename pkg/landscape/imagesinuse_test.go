package landscape

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trellis-garden/trellis/pkg/images"
)

// built says that the last build of a clone made gardenlet with a tag.
func built(t *testing.T, l *Landscape, tag string) {
	t.Helper()
	vector := "images:\n- {name: gardenlet, repository: ghcr.io/trellis-garden/gardenlet, tag: " + tag + "}\n"
	path := filepath.Join(l.CacheDir(), images.VectorFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(vector), 0o644); err != nil {
		t.Fatal(err)
	}
}

// started says that a landscape was started once.
func started(t *testing.T, l *Landscape) {
	t.Helper()
	if err := os.MkdirAll(l.StateDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.path("state.json"), []byte(`{"name":"`+l.Name+`"}`), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tagsInUse are those of gardenlet that landscapes of a clone use.
func tagsInUse(t *testing.T, root string) (tags []string) {
	t.Helper()
	vectors, err := vectorsOfAll(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, vector := range vectors {
		tags = append(tags, vector["gardenlet"].Tag)
	}
	slices.Sort(tags)
	return tags
}

// pass runs phases of an `up`, by whether they use images.
func pass(t *testing.T, l *Landscape, withoutImages bool, fails error) {
	t.Helper()
	r := &run{Landscape: l, Progress: &Progress{out: io.Discard, log: io.Discard}}
	do := func(context.Context, *run) error { return fails }
	if err := r.runPhase(t.Context(), phase{run: do, withoutImages: withoutImages}); (err == nil) != (fails == nil) {
		t.Fatal(err)
	}
}

// A landscape uses the images of every build that it was updated to until an `up` has ended well, and then those of the
// last one. One that only builds uses none, nor does one that was removed.
func TestImagesInUse(t *testing.T) {
	root := t.TempDir()
	local, other := &Landscape{Name: DefaultName, Root: root}, &Landscape{Name: "other", Root: root}
	for _, l := range []*Landscape{local, other} {
		if err := l.useNoImages(); err != nil {
			t.Fatal(err)
		}
		started(t, l)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		what string
		do   func()
		want []string
	}{
		{"builds", func() { built(t, local, "one"); pass(t, local, true, nil) }, nil},
		{"starts", func() { pass(t, local, false, nil) }, []string{"one"}},
		{"starts another", func() { pass(t, other, false, nil); must(other.useImagesOnly()) }, []string{"one", "one"}},
		{"is up", func() { must(local.useImagesOnly()) }, []string{"one", "one"}},
		{
			"fails to update", func() { built(t, local, "two"); pass(t, local, false, errors.New("no")) },
			[]string{"one", "one", "two"},
		},
		{
			"fails once more", func() { built(t, local, "three"); pass(t, local, false, errors.New("no")) },
			[]string{"one", "one", "three", "two"},
		},
		{"is updated", func() { must(local.useImagesOnly()) }, []string{"one", "three"}},
		{"is updated again", func() { pass(t, local, false, nil); must(local.useImagesOnly()) }, []string{"one", "three"}},
		{"removes the other", func() { must(removeState(other.StateDir())) }, []string{"three"}},
	} {
		step.do()
		if got := tagsInUse(t, root); !slices.Equal(got, step.want) {
			t.Errorf("when somebody %s, %q are in use, want %q", step.what, got, step.want)
		}
	}
}

// What a killed `up` was writing is no vector, and goes with the next one that ends well.
func TestAHalfWrittenVectorIsNotRead(t *testing.T) {
	l := &Landscape{Name: DefaultName, Root: t.TempDir()}
	started(t, l)
	built(t, l, "one")
	if err := l.useImagesOnly(); err != nil {
		t.Fatal(err)
	}
	half := l.path(imagesInUse, ".0123.yaml.new")
	if err := os.WriteFile(half, []byte("images:\n- {nam"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := tagsInUse(t, l.Root); !slices.Equal(got, []string{"one"}) {
		t.Errorf("%q are in use", got)
	}
	if err := l.useImagesOnly(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(half); err == nil {
		t.Error("it is still there")
	}
}

// What an older program started used images that nobody wrote down, so none may be removed until it is updated.
func TestImagesInUseOfAnOlderLandscape(t *testing.T) {
	l := &Landscape{Name: "other", Root: t.TempDir()}
	started(t, l)
	built(t, l, "one")
	unknown := func(when string) {
		t.Helper()
		_, err := vectorsOfAll(l.Root)
		if err == nil || !strings.Contains(err.Error(), "`make up NAME=other` does") {
			t.Errorf("%s: %v", when, err)
		}
	}
	unknown("before an update")
	pass(t, l, false, nil)
	unknown("during one")
	if err := l.useImagesOnly(); err != nil {
		t.Fatal(err)
	}
	if got := tagsInUse(t, l.Root); !slices.Equal(got, []string{"one"}) {
		t.Errorf("%q are in use", got)
	}
	if err := os.WriteFile(l.path(imagesInUse, "broken.yaml"), []byte("images: broken"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := vectorsOfAll(l.Root); err == nil || !strings.Contains(err.Error(), "broken.yaml") {
		t.Errorf("a broken vector: %v", err)
	}
}

// Builds of a landscape know what all landscapes of the clone use.
func TestBuildsKnowImagesInUse(t *testing.T) {
	l := &Landscape{Name: DefaultName, Root: t.TempDir()}
	started(t, l)
	built(t, l, "one")
	if err := l.useImagesOnly(); err != nil {
		t.Fatal(err)
	}
	r := &run{Landscape: &Landscape{Name: "other", Root: l.Root}}
	vectors, err := r.buildOptions().InUse()
	if err != nil || len(vectors) != 1 || vectors[0]["gardenlet"].Tag != "one" {
		t.Errorf("got %v, %v", vectors, err)
	}
}
