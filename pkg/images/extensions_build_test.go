package images

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trellis-garden/trellis/pkg/imagevector"
)

// everything is an extension with all that one may have.
var everything = Extension{
	Name: "provider-example", Dir: "extensions/provider-example",
	Programs: []string{"example-tool"}, CNIPlugins: []string{"example"}, MachineFiles: "machine",
	Modules: []Module{{Name: "Example", Dir: "images/example", Packages: []string{"."}, Output: "exampled"}},
	Layer: ProgramLayer{
		Name: "example-tools", Files: []ProgramFile{{Path: "usr/local/bin/tool", Program: "example-tool"}},
	},
	Images: []Image{{
		Reference: "registry.example/exampled:v1",
		Layer: ProgramLayer{
			Name: "exampled", Files: []ProgramFile{{Path: "opt/bin/exampled", Program: "exampled"}},
		},
	}},
}

// builderOf has our extensions and others, and stand-ins for whatever is compiled or unpacked.
func builderOf(t *testing.T, extensions ...Extension) *builder {
	t.Helper()
	dir := t.TempDir()
	b := &builder{
		Options: Options{Root: dir, Cache: dir, Extensions: append(slices.Clone(Extensions), extensions...)},
		store:   Store{Dir: filepath.Join(dir, StoreDir)}, layers: map[string]Layer{}, vector: imagevector.Vector{},
		digests: map[string]map[string]string{},
	}
	files := []string{filepath.Join(dir, "stamps", "none")}
	for _, p := range b.allPrograms() {
		files = append(files, b.bin(p.name))
	}
	for _, name := range append([]string{"coredns", "metrics-server"}, RuntimePrograms...) {
		files = append(files, b.bin(name))
	}
	for _, pkg := range cniPlugins.Packages {
		files = append(files, b.bin(filepath.Base(pkg)))
	}
	for _, e := range b.Extensions {
		for _, m := range e.Modules {
			files = append(files, b.bin(m.Output))
		}
		if e.MachineFiles != "" {
			files = append(files, filepath.Join(dir, e.Dir, e.MachineFiles, "etc", e.Name))
		}
	}
	for _, path := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(filepath.Base(path)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{string(baseStatic), string(baseNetwork), "nginx", "machine"} {
		layer, err := b.store.WriteLayer([]LayerEntry{{Path: "etc/" + name, Mode: 0o644}})
		if err != nil {
			t.Fatal(err)
		}
		b.layers[name] = layer
	}
	return b
}

// filesOf are the files of an image, and what it runs and as whom.
func filesOf(t *testing.T, store Store, reference string) (files []string, config v1.Config) {
	t.Helper()
	read := func(digest v1.Hash, into any) {
		data, err := os.ReadFile(store.blobPath(digest))
		if err == nil {
			err = json.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatalf("%s: %v", reference, err)
		}
	}
	registry, repository, tag, err := splitReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := store.Resolve(registry, repository, tag)
	if err != nil {
		t.Fatalf("%s: %v", reference, err)
	}
	var manifest v1.Manifest
	var configFile v1.ConfigFile
	read(digest, &manifest)
	read(manifest.Config.Digest, &configFile)
	for _, layer := range manifest.Layers {
		blob, err := os.Open(store.blobPath(layer.Digest))
		if err != nil {
			t.Fatal(err)
		}
		defer blob.Close()
		for archive := tar.NewReader(blob); ; {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if header.Typeflag != tar.TypeDir {
				files = append(files, header.Name)
			}
		}
	}
	return files, configFile.Config
}

// Everything that an extension names beside its own program is compiled.
func TestWhatAnExtensionNamesIsCompiled(t *testing.T) {
	b := builderOf(t, everything)
	var packages, steps []string
	for _, p := range b.allPrograms() {
		packages = append(packages, p.pkg)
	}
	for _, name := range []string{"provider-example", "example-tool", "cni-example"} {
		if pkg := "./extensions/provider-example/cmd/" + name; !slices.Contains(packages, pkg) {
			t.Errorf("%s is not compiled", pkg)
		}
	}
	for _, c := range b.compilations() {
		steps = append(steps, c.name)
	}
	for _, name := range []string{"Terraform", "flannel", "Example", "CoreDNS", "metrics-server"} {
		if !slices.Contains(steps, name) {
			t.Errorf("%s is not compiled in one of %q", name, steps)
		}
	}
}

// What an extension names lies in images: in that of its program, in its others, in that of network plugins, and in
// that of machines. Programs of components have images of the same kind.
func TestWhatAnExtensionNamesIsInImages(t *testing.T) {
	b := builderOf(t, everything)
	b.Env = []string{"EXAMPLE=1", "OTHER=2"}
	for _, assemble := range []func() error{
		func() error { return b.ownImages(t.Context()) }, func() error { return b.thirdPartyImages(t.Context()) },
		func() error { return b.imagesOfModules(t.Context()) }, func() error { return b.machineImage(t.Context()) },
	} {
		if err := assemble(); err != nil {
			t.Fatal(err)
		}
	}
	const mirror, provider = "usr/local/share/terraform/providers/", "/trellis-garden/local/0.1.0/linux_amd64/" +
		"terraform-provider-local_v0.1.0"
	for reference, want := range map[string]struct {
		files []string
		// runs is the first word of what is started.
		runs, user string
	}{
		"ghcr.io/trellis-garden/provider-example:dev": {
			[]string{"etc/static", "usr/local/bin/tool", "usr/local/bin/provider-example"},
			"/usr/local/bin/provider-example", nonRoot,
		},
		"ghcr.io/trellis-garden/os-debian:dev": {
			[]string{"etc/static", "usr/local/bin/os-debian"}, "/usr/local/bin/os-debian", nonRoot,
		},
		"ghcr.io/trellis-garden/provider-local:dev": {
			[]string{
				"etc/network", "usr/local/bin/objectstore", "usr/local/bin/terraform",
				mirror + "registry.opentofu.org" + provider, mirror + "registry.terraform.io" + provider,
				"usr/local/bin/provider-local",
			},
			"/usr/local/bin/provider-local", "",
		},
		"registry.k8s.io/coredns/coredns:v1.12.4": {[]string{"etc/static", "coredns"}, "/coredns", nonRoot},
		"registry.k8s.io/metrics-server/metrics-server:" + metricsServerVersion: {
			[]string{"etc/static", "metrics-server"}, "/metrics-server", nonRoot,
		},
		"registry.example/exampled:v1": {[]string{"etc/static", "opt/bin/exampled"}, "/opt/bin/exampled", nonRoot},
		"ghcr.io/flannel-io/flannel:v0.26.7": {
			[]string{"etc/network", "opt/bin/flanneld"}, "/opt/bin/flanneld", "",
		},
		"ghcr.io/trellis-garden/cni-plugins:v1.8.0": {
			[]string{
				"etc/network", "install", "opt/cni/bin/bridge", "opt/cni/bin/example", "opt/cni/bin/flannel",
				"opt/cni/bin/host-local", "opt/cni/bin/loopback", "opt/cni/bin/portmap",
			},
			"/install", "",
		},
		"ghcr.io/trellis-garden/machine-debian:12.11.0": {
			[]string{
				"etc/machine", "etc/provider-example", "etc/provider-local", SystemdEnvFile,
				"usr/local/bin/containerd", "usr/local/bin/containerd-shim-runc-v2", "usr/local/bin/ctr",
				"usr/local/bin/node-agent", "usr/local/bin/runc",
			},
			"/lib/systemd/systemd", "",
		},
	} {
		files, config := filesOf(t, b.store, reference)
		if !slices.Equal(files, want.files) || config.Entrypoint[0] != want.runs || config.User != want.user {
			t.Errorf("%s: files %q, runs %q as %q, want %+v", reference, files, config.Entrypoint, config.User, want)
		}
		if !slices.Equal(config.Env[1:], b.Env) {
			t.Errorf("%s: programs find %q beside their path, want %q", reference, config.Env[1:], b.Env)
		}
	}
	if b.vector["provider-example"].Tag == "" {
		t.Error("the image vector does not name the image of provider-example by its content")
	}
}

// A program that was taken from this machine, or built in place of that, is kept; other modules are always built.
func TestAProgramOfThisMachineIsKept(t *testing.T) {
	b := builderOf(t)
	m := Module{Output: "taken", OnPath: []string{"taken-elsewhere"}}
	t.Setenv("PATH", t.TempDir())
	if taken, err := b.takeFromPath(m); err != nil || taken {
		t.Errorf("a program was taken that is not there: %v", err)
	}
	if err := os.WriteFile(b.bin("taken"), []byte("kept"), 0o755); err != nil {
		t.Fatal(err)
	}
	if taken, err := b.takeFromPath(m); err != nil || !taken {
		t.Errorf("what was taken before is built: %v", err)
	}
	if taken, err := b.takeFromPath(Module{Output: "taken"}); err != nil || taken {
		t.Errorf("a module is not built, though it names no program to take: %v", err)
	}
}
