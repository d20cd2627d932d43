package images

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Handler serves the images of a store by the read half of the OCI distribution API. A client that uses it as a mirror
// says with the query parameter ns which registry it stands for, as containerd does; without it the repository is
// looked for in every registry of the store.
func Handler(store Store) http.Handler { return registryHandler{store} }

type registryHandler struct{ store Store }

func (h registryHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		registryError(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "this registry is read-only")
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/v2/")
	if !ok || path == "" {
		w.WriteHeader(http.StatusOK)
		return
	}
	if repository, reference, ok := cutLast(path, "/manifests/"); ok {
		h.manifest(w, r, repository, reference)
		return
	}
	if _, digest, ok := cutLast(path, "/blobs/"); ok {
		h.blob(w, r, digest, "application/octet-stream")
		return
	}
	registryError(w, http.StatusNotFound, "UNSUPPORTED", "only manifests and blobs are served here")
}

func (h registryHandler) manifest(w http.ResponseWriter, r *http.Request, repository, reference string) {
	if !strings.HasPrefix(reference, "sha256:") {
		digest, err := h.resolve(r.URL.Query().Get("ns"), repository, reference)
		if err != nil {
			registryError(w, http.StatusNotFound, "MANIFEST_UNKNOWN",
				repository+":"+reference+" is not in the landscape's registry")
			return
		}
		reference = digest.String()
	}
	h.blob(w, r, reference, string(types.OCIManifestSchema1))
}

func (h registryHandler) resolve(registry, repository, tag string) (v1.Hash, error) {
	if registry != "" {
		return h.store.Resolve(registry, repository, tag)
	}
	entries, err := os.ReadDir(filepath.Join(h.store.Dir, "tags"))
	if err != nil {
		return v1.Hash{}, err
	}
	for _, entry := range entries {
		if digest, err := h.store.Resolve(entry.Name(), repository, tag); err == nil {
			return digest, nil
		}
	}
	return v1.Hash{}, fs.ErrNotExist
}

func (h registryHandler) blob(w http.ResponseWriter, r *http.Request, reference, mediaType string) {
	digest, err := v1.NewHash(reference)
	if err != nil {
		registryError(w, http.StatusBadRequest, "DIGEST_INVALID", err.Error())
		return
	}
	file, err := os.Open(h.store.blobPath(digest))
	if err != nil {
		registryError(w, http.StatusNotFound, "BLOB_UNKNOWN", reference+" is not in the landscape's registry")
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		registryError(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Docker-Content-Digest", digest.String())
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	http.ServeContent(w, r, "", info.ModTime(), file)
}

func registryError(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body, err := json.Marshal(map[string]any{"errors": []map[string]string{{"code": code, "message": message}}})
	if err == nil {
		_, _ = w.Write(body)
	}
}

func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}
