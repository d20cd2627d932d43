package images

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trellis-garden/trellis/pkg/imagevector"
)

// newImage stores an image with one file.
func newImage(t *testing.T, store Store, references ...string) {
	t.Helper()
	layer, err := store.WriteLayer([]LayerEntry{{Path: "usr/local/bin/hello", Content: []byte("hello"), Mode: 0o755}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.WriteImage(ImageSpec{
		References: references, Layers: []Layer{layer}, Entrypoint: []string{"/usr/local/bin/hello"}, User: nonRoot,
	}); err != nil {
		t.Fatal(err)
	}
}

// What the store serves is what a registry's client expects, down to every digest.
func TestImageIsPulledWhole(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	newImage(t, store, "docker.io/library/hello:latest", "ghcr.io/trellis-garden/hello:dev")
	server := httptest.NewServer(Handler(store))
	defer server.Close()

	var manifest v1.Manifest
	fetch(t, server.URL+"/v2/library/hello/manifests/latest?ns=docker.io", nil, &manifest)
	var config v1.ConfigFile
	fetch(t, server.URL+"/v2/library/hello/blobs/"+manifest.Config.Digest.String(), &manifest.Config, &config)
	if config.Config.User != nonRoot || len(config.Config.Entrypoint) != 1 {
		t.Errorf("configuration %+v", config.Config)
	}
	if len(manifest.Layers) != 1 || len(config.RootFS.DiffIDs) != 1 ||
		config.RootFS.DiffIDs[0] != manifest.Layers[0].Digest {
		t.Fatalf("layers %+v of %+v", manifest.Layers, config.RootFS)
	}
	content := bytes.NewReader(fetch(t, server.URL+"/v2/library/hello/blobs/"+manifest.Layers[0].Digest.String(),
		&manifest.Layers[0], nil))
	files := map[string]string{}
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(header.Name, "/")] = string(data)
	}
	if files["usr/local/bin/hello"] != "hello" {
		t.Errorf("files %v", files)
	}
	if _, ok := files["usr/local"]; !ok {
		t.Errorf("parent folders are missing: %v", files)
	}
}

// fetch reads what a client would, checks it against its descriptor and decodes it.
func fetch(t *testing.T, url string, want *v1.Descriptor, into any) []byte {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", url, response.Status, err)
	}
	digest, size, err := v1.SHA256(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if header := response.Header.Get("Docker-Content-Digest"); header != digest.String() {
		t.Errorf("%s: header says %s, content is %s", url, header, digest)
	}
	if want != nil && (want.Digest != digest || want.Size != size) {
		t.Errorf("%s: got %s of %d bytes, want %s of %d", url, digest, size, want.Digest, want.Size)
	}
	if into != nil {
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatal(err)
		}
	}
	return data
}

// containerd names the registry that a mirror stands for; an image of another registry must not be given for it.
func TestMirrorTellsRegistriesApart(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	newImage(t, store, "quay.io/team/app:v1")
	for query, want := range map[string]int{"": 200, "?ns=quay.io": 200, "?ns=docker.io": 404} {
		recorder := httptest.NewRecorder()
		Handler(store).ServeHTTP(recorder, httptest.NewRequest("GET", "/v2/team/app/manifests/v1"+query, nil))
		if recorder.Code != want {
			t.Errorf("%q: got %d, want %d", query, recorder.Code, want)
		}
	}
}

func TestSameEntriesMakeTheSameLayer(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	a, b := LayerEntry{Path: "a", Content: []byte("1"), Mode: 0o644},
		LayerEntry{Path: "b/c", Content: []byte("2"), Mode: 0o755}
	one, err := store.WriteLayer([]LayerEntry{a, b})
	if err != nil {
		t.Fatal(err)
	}
	two, err := store.WriteLayer([]LayerEntry{b, a})
	if err != nil {
		t.Fatal(err)
	}
	if one != two {
		t.Errorf("%v and %v differ", one, two)
	}
	if !store.HasLayer(one) {
		t.Error("the layer is not in the store")
	}
	if err := os.Truncate(store.blobPath(one.Digest), 1); err != nil {
		t.Fatal(err)
	}
	if store.HasLayer(one) {
		t.Error("a cut layer counts as present")
	}
}

func TestWriteImageRefusesBadReferences(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	for _, reference := range []string{"", "nginx", "docker.io/nginx", "docker.io/../../x:y", "docker.io/x:../../y"} {
		if _, err := store.WriteImage(ImageSpec{References: []string{reference}}); err == nil ||
			!strings.Contains(err.Error(), "registry/repository:tag") {
			t.Errorf("%q: %v", reference, err)
		}
	}
}

func TestRegistryIsReadOnly(t *testing.T) {
	recorder := httptest.NewRecorder()
	Handler(Store{Dir: t.TempDir()}).ServeHTTP(recorder, httptest.NewRequest("PUT", "/v2/x/manifests/y", nil))
	if recorder.Code != 405 {
		t.Errorf("got %d", recorder.Code)
	}
}

// No path leads out of the store.
func FuzzHandler(f *testing.F) {
	dir := f.TempDir()
	store := Store{Dir: filepath.Join(dir, "store")}
	if err := os.MkdirAll(filepath.Join(store.Dir, "tags", "docker.io"), 0o755); err != nil {
		f.Fatal(err)
	}
	const secret = "outside of the store"
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(secret), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Add("x/manifests/y", "docker.io")
	f.Add("../../manifests/secret", "../..")
	f.Add("x/blobs/sha256:../../../secret", "")
	f.Add("x/manifests/sha256:../../../secret", "")
	handler := Handler(store)
	f.Fuzz(func(t *testing.T, path, registry string) {
		request := httptest.NewRequest("GET", "/v2/", nil)
		request.URL.Path = "/v2/" + path
		query := request.URL.Query()
		query.Set("ns", registry)
		request.URL.RawQuery = query.Encode()
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		if bytes.Contains(recorder.Body.Bytes(), []byte(secret)) {
			t.Errorf("%q of %q leads out of the store", path, registry)
		}
	})
}

func TestResolveOfUnknownTag(t *testing.T) {
	if _, err := (Store{Dir: t.TempDir()}).Resolve("docker.io", "library/x", "y"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// The vector of a build pins its own images and those of others, which it names by the tags that the embedded vector
// has.
func TestVectorHasDigests(t *testing.T) {
	b := &builder{
		Options: Options{Cache: t.TempDir()}, vector: imagevector.Vector{}, digests: map[string]map[string]string{},
	}
	b.store = Store{Dir: filepath.Join(b.Cache, StoreDir)}
	layer, err := b.store.WriteLayer([]LayerEntry{{Path: "pause", Content: []byte("pause"), Mode: 0o755}})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.writeImage(ImageSpec{
		References: []string{"registry.k8s.io/pause:3.10"}, Layers: []Layer{layer},
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.writeOwnImage("gardenlet", ImageSpec{Layers: []Layer{layer}}); err != nil {
		t.Fatal(err)
	}
	if err := b.writeVector(); err != nil {
		t.Fatal(err)
	}
	t.Setenv(imagevector.OverwriteEnv, filepath.Join(b.Cache, VectorFile))
	vector, err := imagevector.Load()
	if err != nil {
		t.Fatal(err)
	}
	for name, registry := range map[string]string{"pause": "registry.k8s.io", "gardenlet": "ghcr.io"} {
		image, err := vector.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := b.store.Resolve(registry, strings.TrimPrefix(image.Repository, registry+"/"), image.Tag)
		if err != nil || image.Digest != digest.String() {
			t.Errorf("%s: got %s, %v; want %s", name, image, err, digest)
		}
	}
}
