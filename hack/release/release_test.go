package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/trellisctl"
	"github.com/trellis-garden/trellis/pkg/trellisctl/reference"
)

// manifest is what Krew demands of a plugin.
type manifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string `json:"version"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Caveats          string `json:"caveats"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			URI    string `json:"uri"`
			SHA256 string `json:"sha256"`
			Bin    string `json:"bin"`
			Files  []struct {
				From string `json:"from"`
				To   string `json:"to"`
			} `json:"files"`
		} `json:"platforms"`
	} `json:"spec"`
}

func TestKrewManifest(t *testing.T) {
	checksums := map[platform]string{}
	for _, p := range platforms {
		checksums[p] = checksum([]byte(p.archive()))
	}
	text, err := krew("v0.1.0", "https://example.com/trellis/", checksums)
	if err != nil {
		t.Fatal(err)
	}
	var got manifest
	if err := yaml.UnmarshalStrict(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || got.Kind != "Plugin" ||
		got.Metadata.Name != "trellis" || got.Spec.Version != "v0.1.0" || got.Spec.ShortDescription == "" ||
		len(got.Spec.ShortDescription) > 50 || got.Spec.Description == "" || got.Spec.Caveats == "" {
		t.Errorf("got %+v", got)
	}
	seen := map[platform]bool{}
	for _, p := range got.Spec.Platforms {
		on := platform{p.Selector.MatchLabels["os"], p.Selector.MatchLabels["arch"]}
		seen[on] = true
		if p.URI != "https://example.com/trellis/"+on.archive() || p.SHA256 != checksums[on] || p.Bin != on.program() {
			t.Errorf("%v: got %+v", on, p)
		}
		if len(p.Files) != 2 || p.Files[0].From != p.Bin || p.Files[1].From != "LICENSE" || p.Files[0].To != "." {
			t.Errorf("%v: got files %+v", on, p.Files)
		}
	}
	if len(seen) != 6 || len(got.Spec.Platforms) != len(seen) {
		t.Errorf("got %d platforms: %v", len(got.Spec.Platforms), seen)
	}
}

// Archives are the same whenever they are made, and hold the program under the name by which kubectl finds it.
func TestArchives(t *testing.T) {
	files := contents(platform{"linux", "amd64"}, "v1.2.3", []byte("program"), []byte("text"))
	archive, err := pack(files)
	again, againErr := pack(files)
	if err := errors.Join(err, againErr); err != nil || !bytes.Equal(archive, again) {
		t.Fatalf("two archives differ, or: %v", err)
	}
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	unpacked := tar.NewReader(plain)
	for _, want := range files {
		header, err := unpacked.Next()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(unpacked)
		if err != nil || header.Name != want.name || header.Mode != want.mode || !bytes.Equal(content, want.content) ||
			header.ModTime.Unix() != 0 || header.Uname != "" {
			t.Errorf("got %+v, %q, %v", header, content, err)
		}
	}
	if _, err := unpacked.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("there is more in the archive, or: %v", err)
	}
	if checksum([]byte("abc")) != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Error("checksums are not those of SHA-256")
	}
}

// Archives have a man page for each command of the reference, but for Windows, and all have the program and the
// license.
func TestWhatArchivesHold(t *testing.T) {
	for _, p := range platforms {
		held := map[string]string{}
		for _, f := range contents(p, "v1.2.3", []byte("program"), []byte("text")) {
			held[f.name] = string(f.content)
		}
		if held[p.program()] != "program" || held["LICENSE"] != "text" {
			t.Errorf("%v: got %d files without program or license", p, len(held))
		}
		for _, command := range reference.All(trellisctl.NewCommand()) {
			name := manFolder + strings.ReplaceAll(command.CommandPath(), " ", "-") + ".1"
			page, found := held[name]
			if found != (p.system != "windows") || found && (!strings.Contains(page, "trellisctl v1.2.3") ||
				!strings.Contains(page, ".SH EXAMPLES")) {
				t.Errorf("%v: page %s: %t\n%s", p, name, found, page)
			}
		}
	}
}

// What is released for this platform starts, and says which version it is.
func TestTheReleaseStarts(t *testing.T) {
	p := platform{runtime.GOOS, runtime.GOARCH}
	if !slices.Contains(platforms, p) {
		t.Skipf("nothing is released for %v", p)
	}
	t.Chdir("../..")
	for _, path := range []string{"go.mod", "cmd/trellisctl/main.go"} {
		// The Go command runs the test again when one of them has changed.
		if _, err := os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	program, err := build(t.Context(), p, "v0.0.1-test")
	if err != nil {
		t.Fatal(err)
	}
	if err := start(t.Context(), p, program, "v0.0.1-test"); err != nil {
		t.Error(err)
	}
	if err := start(t.Context(), p, program, "v0.0.2"); err == nil || !strings.Contains(err.Error(), "and not v0.0.2") {
		t.Errorf("another version: got %v", err)
	}
	if err := start(t.Context(), p, []byte("no program"), "v0.0.1-test"); err == nil {
		t.Error("what is no program starts")
	}
}

// Every package of the program is there for every platform: none has files for other systems only. `make release`
// builds them all.
func TestAllPlatformsHaveTheirFiles(t *testing.T) {
	for _, p := range platforms {
		command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-e", "-f",
			"{{if .Error}}{{.ImportPath}}: {{.Error}}{{end}}", "../../cmd/trellisctl")
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+p.system, "GOARCH="+p.processor)
		said, err := command.Output() // What it downloads, it tells on the other one.
		if text := strings.TrimSpace(string(said)); err != nil || text != "" {
			t.Errorf("%v: %v\n%s", p, err, text)
		}
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	const base = "https://example.com/trellis"
	for _, test := range []struct{ version, base, problem string }{
		{"v0.1.0", base, ""}, {"v1.2.3-rc.1", base, ""}, {"0.1.0", base, "must be like v0.1.0"},
		{"v0.1.0 -X a.b=c", base, "must be like v0.1.0"}, {"v01.0.0", base, "must be like v0.1.0"},
		{"v0.1.0", "http://example.com", "must be https://"}, {"v0.1.0", "", "must be https://"},
		{"v0.1.0", "https://user:x@example.com/a", "must be https://"}, {"v0.1.0", base + "?a=b", "must be https://"},
		{"v0.1.0", "https://example.com/a\nb: c", "base URL"}, {"v0.1.0", "https://example.com/a: b", "must be https://"},
	} {
		err := check(test.version, test.base)
		if (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s at %s: got %v", test.version, test.base, err)
		}
	}
}
