package images

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/trellis-garden/trellis/pkg/imagevector"
)

const coreDNSRepository = "registry.k8s.io/coredns/coredns"

// buildOf makes two images of a content, on a layer that all builds share: one of Trellis, whose tag follows from what
// is in it, and one whose tag is always the same.
func buildOf(t *testing.T, cache, content string) *builder {
	t.Helper()
	b := &builder{
		Options: Options{Cache: cache, InUse: func() ([]imagevector.Vector, error) { return nil, nil }},
		store:   Store{Dir: filepath.Join(cache, StoreDir)},
		vector:  imagevector.Vector{}, digests: map[string]map[string]string{},
	}
	spec := ImageSpec{Layers: []Layer{layerOf(t, b.store, "base"), layerOf(t, b.store, content)}}
	if err := b.writeOwnImage("gardenlet", spec); err != nil {
		t.Fatal(err)
	}
	spec.References = []string{coreDNSRepository + ":v1.12.4"}
	if err := b.writeImage(spec); err != nil {
		t.Fatal(err)
	}
	return b
}

func layerOf(t *testing.T, store Store, content string) Layer {
	t.Helper()
	layer, err := store.WriteLayer([]LayerEntry{{Path: "program", Content: []byte(content), Mode: 0o755}})
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

// vectorOf is the image vector that a build leaves.
func vectorOf(t *testing.T, b *builder) imagevector.Vector {
	t.Helper()
	if err := b.writeVector(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(b.Cache, VectorFile))
	if err != nil {
		t.Fatal(err)
	}
	vector, err := imagevector.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return vector
}

// ageBy makes all files below a folder older.
func ageBy(t *testing.T, dir string, age time.Duration) {
	t.Helper()
	changed := time.Now().Add(-age)
	for _, file := range storedBelow(t, dir) {
		if err := os.Chtimes(filepath.Join(dir, file), changed, changed); err != nil {
			t.Fatal(err)
		}
	}
}

func storedBelow(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := Store{Dir: dir}.files("")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		names = append(names, file.name)
	}
	return names
}

// lacks says what of an image cannot be pulled by its digest.
func lacks(t *testing.T, store Store, digest string) (missing []string) {
	t.Helper()
	manifest, err := v1.NewHash(digest)
	if err != nil {
		t.Fatal(err)
	}
	blobs, _, err := store.parts(manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, blob := range append(blobs, manifest) {
		if _, err := os.Stat(store.blobPath(blob)); err != nil {
			missing = append(missing, blob.String())
		}
	}
	return missing
}

// pulled says whether the images of a build can be pulled: by digest, and those of Trellis by their tags.
func pulled(t *testing.T, b *builder) bool {
	t.Helper()
	repository := ownRegistry + "/gardenlet"
	tag := b.vector["gardenlet"].Tag
	own, err := b.store.Resolve("ghcr.io", "trellis-garden/gardenlet", tag)
	return err == nil && own.String() == b.digests[repository][tag] && len(lacks(t, b.store, own.String())) == 0 &&
		len(lacks(t, b.store, b.digests[coreDNSRepository]["v1.12.4"])) == 0
}

// What stays is of this build, named by a landscape, or new. A landscape pulls by digest, also what a later build has
// taken the tag from.
func TestABuildRemovesImagesThatNobodyUses(t *testing.T) {
	cache := t.TempDir()
	unnamed, used := buildOf(t, cache, "unnamed"), buildOf(t, cache, "used")
	inUse := []imagevector.Vector{vectorOf(t, used)}
	ageBy(t, cache, 2*time.Hour)
	recent, present := buildOf(t, cache, "recent"), buildOf(t, cache, "present")
	var told []string
	present.Progress = func(step string, _ bool, _ time.Duration, _ error) { told = append(told, step) }
	present.InUse = func() ([]imagevector.Vector, error) { return inUse, nil }

	now := time.Now()
	present.removeUnused(now.Add(59 * time.Minute))
	for name, image := range map[string]struct {
		of    *builder
		stays bool
	}{"unnamed": {unnamed, false}, "used": {used, true}, "recent": {recent, true}, "present": {present, true}} {
		if got := pulled(t, image.of); got != image.stays {
			t.Errorf("images of the build %q are there: %v", name, got)
		}
	}
	// A layer, and of each image a configuration and a manifest; both images are alike.
	if want := "removed older images (tags: 1, blobs: 3, 0 MB)"; !slices.Equal(told, []string{want}) {
		t.Errorf("told %q, want %q", told, want)
	}
	if present.store.HasLayer(layerOf(t, Store{Dir: t.TempDir()}, "unnamed")) {
		t.Error("the layer of an image that is gone stays")
	}

	// Nothing is new for ever, and a landscape that was removed uses nothing.
	inUse = nil
	present.removeUnused(now.Add(61 * time.Minute))
	if pulled(t, used) || pulled(t, recent) || !pulled(t, present) {
		t.Errorf("used: %v, recent: %v, present: %v", pulled(t, used), pulled(t, recent), pulled(t, present))
	}
	if files := storedBelow(t, filepath.Join(cache, StoreDir, "blobs")); len(files) != 4 {
		t.Errorf("left are %q", files)
	}
}

// The images of an extension that is built elsewhere are in repositories that no build of ours fills.
func TestImagesThatOthersStoredStay(t *testing.T) {
	cache := t.TempDir()
	b := buildOf(t, cache, "present")
	layer := layerOf(t, b.store, "theirs")
	manifest, err := b.store.WriteImage(ImageSpec{Layers: []Layer{layer}})
	if err != nil {
		t.Fatal(err)
	}
	index, _, err := b.store.writeJSON(v1.IndexManifest{Manifests: []v1.Descriptor{{Digest: manifest}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.store.tag("registry.example/team/extension:v1", index); err != nil {
		t.Fatal(err)
	}
	before := storedBelow(t, cache)
	ageBy(t, cache, 2*time.Hour)
	b.removeUnused(time.Now())
	if after := storedBelow(t, cache); !slices.Equal(after, before) {
		t.Errorf("of %q there are left %q", before, after)
	}
}

// What builds were writing when they were killed goes, and not what one writes now.
func TestFilesOfKilledBuildsAreRemoved(t *testing.T) {
	cache := t.TempDir()
	b := buildOf(t, cache, "present")
	paths := func(name string) []string {
		return []string{
			filepath.Join(b.store.Dir, "blobs/sha256/.new-"+name),
			filepath.Join(b.store.Dir, "tags/ghcr.io/trellis-garden/gardenlet/"+name+".new"),
		}
	}
	for _, name := range []string{"old", "young"} {
		for _, path := range paths(name) {
			if err := os.WriteFile(path, []byte("half"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if name == "old" {
			ageBy(t, cache, 2*time.Hour)
		}
	}
	b.removeUnused(time.Now())
	for name, stays := range map[string]bool{"old": false, "young": true} {
		for _, path := range paths(name) {
			if _, err := os.Stat(path); (err == nil) != stays {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	if !pulled(t, b) {
		t.Error("images of the build are gone")
	}
}

// Killed after any file, a removal leaves no tag without its image, and the next one ends as one that nobody killed.
func TestARemovalThatWasKilledIsEnded(t *testing.T) {
	var want []string
	for removed := 0; ; removed++ {
		cache := t.TempDir()
		buildOf(t, cache, "one")
		buildOf(t, cache, "two")
		ageBy(t, cache, 2*time.Hour)
		b := buildOf(t, cache, "present")
		tags, blobs, err := b.store.unused(usageOf(b.digests, nil), time.Now().Add(-unusedFor))
		if err != nil {
			t.Fatal(err)
		}
		all := append(tags, blobs...)
		if removed > len(all) {
			break
		}
		for _, file := range all[:removed] {
			if err := os.Remove(file.path); err != nil {
				t.Fatal(err)
			}
		}
		for _, tag := range storedBelow(t, filepath.Join(b.store.Dir, "tags")) {
			digest, err := readTag(filepath.Join(b.store.Dir, "tags", tag))
			if err != nil {
				t.Fatal(err)
			}
			if missing := lacks(t, b.store, digest.String()); len(missing) > 0 {
				t.Errorf("after %d files, %s lacks %q", removed, tag, missing)
			}
		}
		b.removeUnused(time.Now())
		left := storedBelow(t, cache)
		if removed == 0 {
			want = left
		} else if !slices.Equal(left, want) {
			t.Errorf("after %d files, there are left %q, want %q", removed, left, want)
		}
	}
	if want == nil {
		t.Error("nothing was removed")
	}
}

// A layer that was removed is made anew when an image needs it again, whatever its stamp says.
func TestALayerThatWasRemovedIsMadeAnew(t *testing.T) {
	cache := t.TempDir()
	b := buildOf(t, cache, "present")
	if err := os.Mkdir(filepath.Join(cache, "stamps"), 0o755); err != nil {
		t.Fatal(err)
	}
	made := 0
	layer := func() Layer {
		layer, err := b.cachedLayer("bin-rare", []string{"inputs"}, func() (Layer, error) {
			made++
			return layerOf(t, b.store, "rare"), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return layer
	}
	first := layer()
	if layer() != first || made != 1 {
		t.Errorf("made %d times", made)
	}
	ageBy(t, cache, 2*time.Hour)
	b.removeUnused(time.Now())
	if b.store.HasLayer(first) {
		t.Error("the layer was not removed")
	}
	if layer() != first || made != 2 || !b.store.HasLayer(first) {
		t.Errorf("made %d times", made)
	}
}

// While another build puts images together, and when it is not known what landscapes use, all stays, and this is told.
func TestNothingIsRemovedInDoubt(t *testing.T) {
	for name, test := range map[string]struct {
		inUse func() ([]imagevector.Vector, error)
		other bool
		told  string
	}{
		"a landscape of an older program": {
			inUse: func() ([]imagevector.Vector, error) { return nil, errors.New("landscape other is silent") },
			told:  "landscape other is silent",
		},
		"another build": {
			inUse: func() ([]imagevector.Vector, error) { return nil, nil }, other: true,
			told: "left to the build that runs beside this one",
		},
		"nobody says what is used": {},
	} {
		t.Run(name, func(t *testing.T) {
			cache := t.TempDir()
			buildOf(t, cache, "old")
			ageBy(t, cache, 2*time.Hour)
			b := buildOf(t, cache, "present")
			told := ""
			b.InUse, b.Progress = test.inUse, func(step string, _ bool, _ time.Duration, _ error) { told += step }
			if test.other {
				unlock, err := b.store.lock(unix.LOCK_SH)
				if err != nil {
					t.Fatal(err)
				}
				defer unlock()
			}
			before := storedBelow(t, cache)
			b.removeUnused(time.Now())
			if after := storedBelow(t, cache); !slices.Equal(after, before) {
				t.Errorf("of %q there are left %q", before, after)
			}
			if !strings.Contains(told, test.told) || test.told == "" && told != "" {
				t.Errorf("told %q, want %q", told, test.told)
			}
		})
	}
}

// Neither a link in the store nor a tag leads a removal out of it.
func TestAttackRemovalStaysInTheStore(t *testing.T) {
	cache, outside := t.TempDir(), t.TempDir()
	b := buildOf(t, cache, "present")
	if err := os.WriteFile(filepath.Join(outside, "dev-old"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"tags/ghcr.io/trellis-garden/gardenlet/x", "blobs/sha256/x"} {
		if err := os.Symlink(outside, filepath.Join(b.store.Dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(outside, "dev-old"), filepath.Join(b.store.Dir, "blobs/sha256/y")); err != nil {
		t.Fatal(err)
	}
	ageBy(t, cache, 2*time.Hour)
	ageBy(t, outside, 2*time.Hour)
	b.removeUnused(time.Now())
	if data, err := os.ReadFile(filepath.Join(outside, "dev-old")); err != nil || string(data) != "precious" {
		t.Errorf("a file outside of the store is %q, %v", data, err)
	}
	path := filepath.Join(b.store.Dir, "tags/ghcr.io/trellis-garden/gardenlet/forged")
	if err := os.WriteFile(path, []byte("sha256:../../../../x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.store.unused(usageOf(b.digests, nil), time.Now()); err != nil {
		t.Errorf("an old tag of whatever content does not go: %v", err)
	}
	if _, _, err := b.store.unused(usageOf(b.digests, nil), time.Now().Add(-unusedFor)); err == nil {
		t.Error("a tag that stays leads anywhere")
	}
}
