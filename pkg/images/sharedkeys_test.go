package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const usedGo = `package used

import _ "embed"

//go:embed data/text
var Text string

func Used() {}
`

// cloneWith is a repository with a module that replaces another by its folder, and a shared folder.
func cloneWith(t *testing.T, shared string) *builder {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"images/one/go.mod": "module example.org/one\n\ngo 1.26\n\nrequire example.org/all v0.0.0\n\n" +
			"replace example.org/all => ../..\n",
		"images/one/go.sum":       "",
		"images/one/main.go":      "package main\n\nimport \"example.org/all/used\"\n\nfunc main() { used.Used() }\n",
		"images/one/main_test.go": "package main\n",
		"go.mod":                  "module example.org/all\n\ngo 1.26\n",
		"used/used.go":            usedGo,
		"used/used_test.go":       "package used\n",
		"used/data/text":          "text",
		"unused/unused.go":        "package unused\n",
	} {
		writeTestFile(t, filepath.Join(dir, name), content, 0o644)
	}
	cache := filepath.Join(dir, ".cache")
	for _, folder := range []string{"bin", "stamps", "rootfs"} {
		if err := os.MkdirAll(filepath.Join(cache, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &builder{
		Options: Options{Root: dir, Cache: cache}, shared: sharedAt(t, shared), store: Store{Dir: t.TempDir()},
	}
}

var moduleOne = Module{Name: "one", Dir: "images/one", Packages: []string{"."}, Output: "one"}

func keyOfOne(t *testing.T, b *builder, m Module) string {
	t.Helper()
	key, err := b.moduleKey(t.Context(), m, b.flagsOf(m))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// The same in another clone has the same key, and each input changes it.
func TestAKeyChangesWithEachInput(t *testing.T) {
	shared := t.TempDir()
	first := keyOfOne(t, cloneWith(t, shared), moduleOne)
	seen := map[string]string{first: "nothing"}
	same := func(what string, b *builder, m Module) {
		if key := keyOfOne(t, b, m); key != first {
			t.Errorf("the key changes with %s", what)
		}
	}
	other := func(what string, b *builder, m Module) {
		key := keyOfOne(t, b, m)
		if as, known := seen[key]; known {
			t.Errorf("the key with another %s is that with %s", what, as)
		}
		seen[key] = what
	}
	same("the clone", cloneWith(t, shared), moduleOne)
	for name, content := range map[string]string{
		"images/one/main_test.go": "package main // other", "used/used_test.go": "package used // other",
		"unused/unused.go": "package unused // other", "images/two/main.go": "package main",
	} {
		b := cloneWith(t, shared)
		writeTestFile(t, filepath.Join(b.Root, name), content, 0o644)
		same(name, b, moduleOne)
	}
	for name, content := range map[string]string{
		"images/one/go.sum": "\n", "images/one/main.go": "// other\n", "images/one/go.mod": "// other\n",
		"used/used.go": "// other\n", "used/data/text": "other", "go.mod": "// other\n",
	} {
		b := cloneWith(t, shared)
		path := filepath.Join(b.Root, name)
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		writeTestFile(t, path, string(old)+content, 0o644)
		other(name, b, moduleOne)
	}
	b := cloneWith(t, shared)
	writeTestFile(t, filepath.Join(b.Root, "images/one/more.go"), "package main\n", 0o644)
	other("file more", b, moduleOne)
	for what, change := range map[string]func(m *Module){
		"link flags": func(m *Module) { m.LDFlags = "-s" }, "tags": func(m *Module) { m.Tags = "tag" },
		"output": func(m *Module) { m.Output = "two" }, "package": func(m *Module) { m.Packages = []string{"./."} },
	} {
		m := moduleOne
		change(&m)
		other(what, cloneWith(t, shared), m)
	}
	for name, value := range map[string]string{
		"GOFLAGS": "-gcflags=-N", "GOARCH": "arm64", "GOAMD64": "v3", "GOEXPERIMENT": "jsonv2",
		"GODEBUG": "panicnil=1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			other(name, cloneWith(t, shared), moduleOne)
		})
	}
}

// An alternative to go.mod is an input: another version of Kubernetes is another program.
func TestAKeyChangesWithTheVersionOfKubernetes(t *testing.T) {
	b := &builder{Options: Options{Root: root}}
	first, second := kubernetes(DefaultKubernetesVersion), kubernetes("1.35.4")
	if !slices.Contains(b.flagsOf(second), "-modfile=go-1.35.4.mod") || len(b.flagsOf(first)) > 0 {
		t.Errorf("flags %q and %q", b.flagsOf(first), b.flagsOf(second))
	}
	second.LDFlags, second.Output = first.LDFlags, first.Output
	if keyOfOne(t, b, first) == keyOfOne(t, b, second) {
		t.Error("the key does not change with the file of modules")
	}
}

// What is in files that flags name is not known: such programs are made for their clone alone.
func TestFlagsThatNameFilesAreNotShared(t *testing.T) {
	if keyOf(inputsOf(map[string]string{"GOFLAGS": "-trimpath"})) == "" {
		t.Error("other flags are not shared")
	}
	for _, flag := range flagsWithFiles {
		if inputs := inputsOf(map[string]string{"GOFLAGS": "-trimpath " + flag + "=file"}); keyOf(inputs) != "" {
			t.Errorf("%s: inputs %q, want none", flag, inputs)
		}
	}
}

// What Debian's packages depend on: where they come from, and time, so that what Debian mended comes in.
func TestAKeyOfDebianChangesWithEachInput(t *testing.T) {
	etc, now := t.TempDir(), time.Unix(1_800_000_000, 0)
	seen := map[string]bool{}
	other := func(what string, now time.Time) {
		t.Helper()
		inputs, err := debianInputs(etc, now)
		if err != nil || seen[keyOf(inputs)] {
			t.Errorf("the key does not change with %s (%v)", what, err)
		}
		seen[keyOf(inputs)] = true
	}
	other("nothing", now)
	for _, name := range []string{
		"os-release", "apt/sources.list", "apt/sources.list.d/debian.sources", "apt/preferences", "apt/preferences.d/a",
	} {
		writeTestFile(t, filepath.Join(etc, name), "one", 0o644)
		other("a new "+name, now)
		writeTestFile(t, filepath.Join(etc, name), "two", 0o644)
		other("another "+name, now)
	}
	other("time", now.Add(sharedFor))
	if again, err := debianInputs(etc, now.Add(sharedFor)); err != nil || !seen[keyOf(again)] {
		t.Errorf("the key changes with nothing (%v)", err)
	}
}

// reports are the steps that a builder tells.
func reports(b *builder) *[]string {
	steps := &[]string{}
	b.Progress = func(step string, done bool, _ time.Duration, _ error) {
		if !done {
			*steps = append(*steps, step)
		}
	}
	return steps
}

// A module is compiled once for all clones; the clone that has its programs leaves them, and one whose entry is damaged
// compiles it.
func TestAModuleIsCompiledOnce(t *testing.T) {
	shared := t.TempDir()
	build := func(b *builder, wantSteps ...string) {
		t.Helper()
		steps := reports(b)
		if err := b.buildModule(t.Context(), moduleOne); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(*steps, wantSteps) {
			t.Errorf("steps %q, want %q", *steps, wantSteps)
		}
	}
	first, second := cloneWith(t, shared), cloneWith(t, shared)
	build(first)
	program, err := os.ReadFile(first.bin("one"))
	if err != nil {
		t.Fatal(err)
	}
	build(second, "one, from the cache")
	wantContent(t, second.bin("one"), string(program))
	build(second)
	writeTestFile(t, second.bin("one"), "somebody else's", 0o755)
	build(second, "one, from the cache")
	wantContent(t, second.bin("one"), string(program))

	entries, err := filepath.Glob(filepath.Join(shared, "trellis", sharedEntries, "*", "one"))
	if err != nil || len(entries) != 1 {
		t.Fatalf("entries %q (%v), want one", entries, err)
	}
	writeTestFile(t, entries[0], "damaged", 0o600)
	third := cloneWith(t, shared)
	build(third)
	wantContent(t, third.bin("one"), string(program))
	build(cloneWith(t, shared), "one, from the cache")
}

// A root file system is made once for all clones, with links, owners and modes, and gives the same layer.
func TestARootFileSystemIsMadeOnce(t *testing.T) {
	shared, made := t.TempDir(), 0
	s := system{
		name: "small", dir: "rootfs/small", packages: []string{"small"},
		make: func(_ context.Context, dir, _ string, _ []string) error {
			made++
			writeTestFile(t, filepath.Join(dir, "usr/bin/tool"), "tool", 0o755)
			return errors.Join(os.Chmod(filepath.Join(dir, "usr/bin/tool"), 0o755|os.ModeSetuid),
				os.Link(filepath.Join(dir, "usr/bin/tool"), filepath.Join(dir, "usr/bin/again")),
				os.Symlink("usr/bin", filepath.Join(dir, "bin")))
		},
		finish: func(dir string) error { return writeFiles(dir, map[string]string{"etc/hostname": "small\n"}) },
	}
	var layers []v1.Hash
	for range 2 {
		b := cloneWith(t, shared)
		if err := b.buildSystem(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(b.Cache, s.dir)
		if info, err := os.Stat(filepath.Join(dir, "bin/again")); err != nil || info.Mode() != 0o755|os.ModeSetuid {
			t.Errorf("the tool has mode %v (%v)", info.Mode(), err)
		}
		layer, err := b.store.WriteTreeLayer(dir)
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, layer.Digest)
		if _, err := os.Stat(dir + ".tar"); err == nil {
			t.Error("the archive is left")
		}
	}
	if made != 1 || layers[0] != layers[1] {
		t.Errorf("it was made %d times, with layers %v", made, layers)
	}
}

// Without a folder that is this user's alone all is built, and it is said why.
func TestABuildGoesOnWithoutTheSharedFolder(t *testing.T) {
	b := cloneWith(t, t.TempDir())
	b.Shared = filepath.Join(t.TempDir(), "trellis")
	if err := os.Mkdir(b.Shared, 0o700); err != nil {
		t.Fatal(err)
	}
	chmod(t, b.Shared, 0o777)
	steps := reports(b)
	b.openShared()
	if err := b.buildModule(t.Context(), moduleOne); err != nil {
		t.Fatal(err)
	}
	if said := fmt.Sprint(*steps); b.shared != nil || !strings.Contains(said, "others may write it") {
		t.Errorf("shared %v, said %s", b.shared, said)
	}
}

// Places that name the shared folder for people: what they say of it is what the tests above hold.
func TestDocsNameTheSharedFolder(t *testing.T) {
	for name, want := range map[string]string{
		"README.md": "~/.cache/trellis", "docs/testing.md": "~/.cache/trellis", "hack/check-generated.sh": "/trellis",
	} {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s does not name %s (%v)", name, want, err)
		}
	}
}
