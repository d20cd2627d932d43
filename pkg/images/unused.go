package images

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/trellis-garden/trellis/pkg/imagevector"
)

// unusedFor is for how long a file of the store stays though nothing names it: a landscape that is being updated may
// be about to pull it, and a build beside this one has yet to tell what it made.
const unusedFor = time.Hour

// usage is which images of a store are needed.
type usage struct {
	// repositories whose other tags go. Those that no build fills are left to who does.
	repositories map[string]bool
	// tags, as repository:tag.
	tags map[string]bool
	// manifests by digest, with tags or without: nodes pull by digests.
	manifests map[string]bool
}

// usageOf is that of a build, whose digests are by repository and tag, and of image vectors.
func usageOf(build map[string]map[string]string, vectors []imagevector.Vector) usage {
	u := usage{repositories: map[string]bool{}, tags: map[string]bool{}, manifests: map[string]bool{}}
	for repository, digests := range build {
		u.repositories[repository] = true
		u.add(repository, digests)
	}
	for _, vector := range vectors {
		for _, source := range vector {
			u.tags[source.Repository+":"+source.Tag] = true
			u.add(source.Repository, source.Digests)
		}
	}
	return u
}

func (u usage) add(repository string, digests map[string]string) {
	for tag, digest := range digests {
		u.tags[repository+":"+tag] = true
		u.manifests[digest] = true
	}
}

// needsTag says whether the file registry/repository/tag stays however old it is.
func (u usage) needsTag(name string) bool {
	repository, tag := path.Split(name)
	repository = strings.TrimSuffix(repository, "/")
	return !isTemporary(name) && (!u.repositories[repository] || u.tags[repository+":"+tag])
}

// isTemporary says whether a file of the store is one that is being written, or was when its process was killed.
func isTemporary(name string) bool {
	return strings.HasSuffix(name, ".new") || strings.HasPrefix(path.Base(name), ".new-")
}

// storedFile is a file of a store. Its name is its path below the folder of tags, or of blobs.
type storedFile struct {
	path, name string
	size       int64
	changed    time.Time
}

// unused are the tags and blobs that may be removed: those that were last changed before a time, and that neither the
// usage nor a tag that stays needs.
func (s Store) unused(needed usage, before time.Time) (tags, blobs []storedFile, err error) {
	all, err := s.files("tags")
	if err != nil {
		return nil, nil, err
	}
	manifests := maps.Clone(needed.manifests)
	for _, file := range all {
		if file.changed.Before(before) && !needed.needsTag(file.name) {
			tags = append(tags, file)
		} else if !isTemporary(file.name) {
			digest, err := readTag(file.path)
			if err != nil {
				return nil, nil, fmt.Errorf("tag %s: %w", file.name, err)
			}
			manifests[digest.String()] = true
		}
	}
	reached, err := s.reach(manifests)
	if err != nil {
		return nil, nil, err
	}
	if blobs, err = s.files("blobs/sha256"); err != nil {
		return nil, nil, err
	}
	return tags, slices.DeleteFunc(blobs, func(file storedFile) bool {
		return reached[file.name] || !file.changed.Before(before)
	}), nil
}

// files are those below a folder of the store. Links are not followed.
func (s Store) files(folder string) (all []storedFile, err error) {
	dir := filepath.Join(s.Dir, folder)
	err = filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		all = append(all, storedFile{file, filepath.ToSlash(name), info.Size(), info.ModTime()})
		return nil
	})
	return all, err
}

// reach returns the names of all blobs that are pulled with manifests, and those of the manifests.
func (s Store) reach(manifests map[string]bool) (map[string]bool, error) {
	reached, read := map[string]bool{}, map[string]bool{}
	for queue := slices.Collect(maps.Keys(manifests)); len(queue) > 0; queue = queue[1:] {
		if read[queue[0]] {
			continue
		}
		read[queue[0]] = true
		digest, err := v1.NewHash(queue[0])
		if err != nil {
			return nil, err
		}
		blobs, more, err := s.parts(digest)
		if err != nil {
			return nil, fmt.Errorf("manifest %s: %w", digest, err)
		}
		for _, blob := range append(blobs, digest) {
			reached[blob.Hex] = true
		}
		for _, manifest := range more {
			queue = append(queue, manifest.String())
		}
	}
	return reached, nil
}

// parts are the blobs that a manifest names, or the manifests that an index names, which others may have put into the
// store. One that is not there names nothing: image vectors may know more than was built here.
func (s Store) parts(digest v1.Hash) (blobs, manifests []v1.Hash, err error) {
	data, err := os.ReadFile(s.blobPath(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var content struct {
		Config    v1.Descriptor   `json:"config"`
		Layers    []v1.Descriptor `json:"layers"`
		Manifests []v1.Descriptor `json:"manifests"`
	}
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, nil, err
	}
	for _, blob := range append(content.Layers, content.Config) {
		blobs = append(blobs, blob.Digest)
	}
	for _, manifest := range content.Manifests {
		manifests = append(manifests, manifest.Digest)
	}
	return blobs, manifests, nil
}

// lock keeps removals away from who puts images together, which may be several (LOCK_SH), and all others away from a
// removal (LOCK_EX), until unlock is called or the process ends.
func (s Store) lock(how int) (unlock func(), err error) {
	dir, err := os.Open(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("locking the images: %w", err)
	}
	for {
		err := unix.Flock(int(dir.Fd()), how)
		if err == nil {
			return func() { dir.Close() }, nil
		}
		if !errors.Is(err, unix.EINTR) {
			dir.Close()
			return nil, fmt.Errorf("locking %s: %w", s.Dir, err)
		}
	}
}

// removed is what was removed from a store.
type removed struct {
	tags, blobs int
	bytes       int64
}

// removeUnused removes from the store what neither this build nor a landscape uses. What it cannot remove, it tells,
// and leaves to the next build: everything is built.
func (b *builder) removeUnused(now time.Time) {
	if b.InUse == nil {
		return
	}
	done, err := b.removeBefore(now.Add(-unusedFor))
	if done != (removed{}) {
		b.report(fmt.Sprintf("removed older images (tags: %d, blobs: %d, %d MB)", done.tags, done.blobs,
			done.bytes/1e6), false, 0, nil)
	}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		b.report("older images are left to the build that runs beside this one", false, 0, nil)
	case err != nil:
		b.report(fmt.Sprintf("older images stay in %s: %v", b.store.Dir, err), false, 0, nil)
	}
}

// removeBefore removes what was last changed before a time, tags first: killed at any point, no tag is left without its
// manifest, and the rest is found the next time.
func (b *builder) removeBefore(before time.Time) (done removed, err error) {
	unlock, err := b.store.lock(unix.LOCK_EX | unix.LOCK_NB)
	if err != nil {
		return done, err
	}
	defer unlock()
	vectors, err := b.InUse()
	if err != nil {
		return done, err
	}
	tags, blobs, err := b.store.unused(usageOf(b.digests, vectors), before)
	if err != nil {
		return done, err
	}
	if done.tags, err = done.remove(tags); err != nil {
		return done, err
	}
	done.blobs, err = done.remove(blobs)
	return done, err
}

// remove removes files and says how many it has removed.
func (r *removed) remove(files []storedFile) (int, error) {
	for i, file := range files {
		if err := os.Remove(file.path); err != nil {
			return i, err
		}
		r.bytes += file.size
	}
	return len(files), nil
}
