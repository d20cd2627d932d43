// Package images builds OCI images without a container engine and serves them: Go programs, Debian packages and the
// machine image, kept in one content-addressed store and rebuilt only when their inputs changed.
package images

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Store is a folder of OCI images: blobs by digest, and one small file per tag that names a manifest.
//
//	blobs/sha256/<hex>
//	tags/<registry>/<repository>/<tag>
type Store struct{ Dir string }

// Layer is a blob of the store that is an uncompressed tar archive, so that its digest is also its diff ID.
type Layer struct {
	Digest v1.Hash
	Size   int64
}

// ImageSpec says what an image is made of.
type ImageSpec struct {
	// References are the full names (registry/repository:tag) that the image gets.
	References []string
	Layers     []Layer
	Entrypoint []string
	Cmd        []string
	Env        []string
	User       string
	WorkingDir string
}

func (s Store) blobPath(digest v1.Hash) string {
	return filepath.Join(s.Dir, "blobs", digest.Algorithm, digest.Hex)
}

// tagPath is the file of a reference; ok is false when the reference has no registry, repository and tag.
func (s Store) tagPath(registry, repository, tag string) (path string, ok bool) {
	for _, part := range []string{registry, repository, tag} {
		if part == "" || strings.Contains(part, "..") || strings.HasPrefix(part, "/") {
			return "", false
		}
	}
	return filepath.Join(s.Dir, "tags", registry, filepath.FromSlash(repository), tag), true
}

// WriteBlob stores what r yields and returns its digest and size.
func (s Store) WriteBlob(r io.Reader) (v1.Hash, int64, error) {
	dir := filepath.Join(s.Dir, "blobs", "sha256")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return v1.Hash{}, 0, err
	}
	file, err := os.CreateTemp(dir, ".new-")
	if err != nil {
		return v1.Hash{}, 0, err
	}
	defer os.Remove(file.Name())
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(file, sum), r)
	if err = errors.Join(err, file.Close()); err != nil {
		return v1.Hash{}, 0, fmt.Errorf("writing a blob to %s: %w", dir, err)
	}
	digest := v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum.Sum(nil))}
	if err := os.Chmod(file.Name(), 0o644); err != nil {
		return v1.Hash{}, 0, err
	}
	return digest, size, os.Rename(file.Name(), s.blobPath(digest))
}

// HasLayer tells whether the blob of a layer is still in the store.
func (s Store) HasLayer(layer Layer) bool {
	info, err := os.Stat(s.blobPath(layer.Digest))
	return err == nil && info.Size() == layer.Size
}

func (s Store) writeJSON(value any) (v1.Hash, int64, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return v1.Hash{}, 0, err
	}
	return s.WriteBlob(strings.NewReader(string(data)))
}

// WriteImage stores the configuration and manifest of an image and points its references at it. The digest of the
// manifest is returned.
func (s Store) WriteImage(spec ImageSpec) (v1.Hash, error) {
	config := v1.ConfigFile{
		Architecture: "amd64",
		OS:           "linux",
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: spec.Entrypoint,
			Cmd:        spec.Cmd,
			Env: append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
				spec.Env...),
			User:       spec.User,
			WorkingDir: spec.WorkingDir,
		},
	}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	for _, layer := range spec.Layers {
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, layer.Digest)
		manifest.Layers = append(manifest.Layers,
			v1.Descriptor{MediaType: types.OCIUncompressedLayer, Size: layer.Size, Digest: layer.Digest})
	}
	digest, size, err := s.writeJSON(config)
	if err != nil {
		return v1.Hash{}, err
	}
	manifest.Config = v1.Descriptor{MediaType: types.OCIConfigJSON, Size: size, Digest: digest}
	digest, _, err = s.writeJSON(manifest)
	if err != nil {
		return v1.Hash{}, err
	}
	for _, reference := range spec.References {
		if err := s.tag(reference, digest); err != nil {
			return v1.Hash{}, err
		}
	}
	return digest, nil
}

func (s Store) tag(reference string, digest v1.Hash) error {
	registry, repository, tag, err := splitReference(reference)
	if err != nil {
		return err
	}
	path, ok := s.tagPath(registry, repository, tag)
	if !ok {
		return fmt.Errorf("image reference %q: want registry/repository:tag", reference)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return writeFileAtomically(path, []byte(digest.String()))
}

// Resolve finds the manifest digest of a tag. The error is fs.ErrNotExist when there is none.
func (s Store) Resolve(registry, repository, tag string) (v1.Hash, error) {
	path, ok := s.tagPath(registry, repository, tag)
	if !ok {
		return v1.Hash{}, fs.ErrNotExist
	}
	return readTag(path)
}

func readTag(path string) (v1.Hash, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return v1.Hash{}, err
	}
	return v1.NewHash(strings.TrimSpace(string(data)))
}

func splitReference(reference string) (registry, repository, tag string, err error) {
	registry, rest, ok := strings.Cut(reference, "/")
	colon := strings.LastIndex(rest, ":")
	if !ok || colon < 0 {
		return "", "", "", fmt.Errorf("image reference %q: want registry/repository:tag", reference)
	}
	return registry, rest[:colon], rest[colon+1:], nil
}

func writeFileAtomically(path string, data []byte) error {
	temporary := path + ".new"
	if err := os.WriteFile(temporary, data, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
