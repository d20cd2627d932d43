package main

import (
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// treeOf parses files that are given by their paths.
func treeOf(t *testing.T, files map[string]string) tree {
	t.Helper()
	result := tree{files: token.NewFileSet(), declared: map[string]map[string]bool{}}
	for name, text := range files {
		if err := result.parse(name, "package p\n"+text); err != nil {
			t.Fatal(err)
		}
	}
	return result
}

func TestRules(t *testing.T) {
	for name, test := range map[string]struct {
		rule  func(tree) []finding
		files map[string]string
		// want is a part of what is found, empty for nothing.
		want string
	}{
		"a key in two packages": {keys, map[string]string{
			"pkg/a/a.go": `const a = "trellis.garden/x"`, "pkg/b/b.go": `const b = "trellis.garden/x"`,
		}, `"trellis.garden/x" is written out in 2 packages`},
		"a key that has a constant": {keys, map[string]string{
			"pkg/a/a.go": `const a = "trellis.garden/x"`, "pkg/apis/core/b.go": `const B = "trellis.garden/x"`,
		}, `"trellis.garden/x" is B of `},
		"a key of one package, and of tests": {keys, map[string]string{
			"pkg/a/a.go": `const a = "trellis.garden/x"`, "pkg/b/b_test.go": `const b = "trellis.garden/x"`,
		}, ""},
		"versions and imports are no keys": {keys, map[string]string{
			"pkg/a/a.go": `import "k8s.io/api"; const a = "core.gardener.cloud/v1beta1"`,
			"pkg/b/b.go": `import "k8s.io/api"; const b = "core.gardener.cloud/v1beta1"`,
		}, ""},
		"a key of another process": {keys, map[string]string{
			"pkg/gardenlet/a/a.go": `const A = "trellis.garden/x"`,
			"extensions/e/b.go":    `import "` + module + `/pkg/gardenlet/a"; var b = a.A`,
		}, "a.A is a key that gardenlet shares"},
		"a group of another process": {keys, map[string]string{
			"pkg/federation/a/a.go":        `const A = "trellis.garden:x"`,
			"extensions/federation/b/b.go": `import "` + module + `/pkg/federation/a"; var b = a.A`,
		}, "a.A is a key that federation shares"},
		"keys of the own process, of a library and of versions": {keys, map[string]string{
			"pkg/vpn/a/a.go":     `const A = "trellis.garden/x"; const Version = "trellis.garden/v1"`,
			"cmd/vpn/b.go":       `import "` + module + `/pkg/vpn/a"; var b = a.A`,
			"pkg/gardenlet/c.go": `import "` + module + `/pkg/vpn/a"; var c = a.Version`,
			"pkg/secrets/d.go":   `const D = "trellis.garden/y"`,
			"pkg/etcd/e.go":      `import "` + module + `/pkg/secrets"; var e = secrets.D`,
		}, ""},
		"a key of another process, in a test": {keys, map[string]string{
			"pkg/gardenlet/a/a.go": `const A = "trellis.garden/x"`,
			"pkg/etcd/b_test.go":   `import "` + module + `/pkg/gardenlet/a"; var b = a.A`,
		}, ""},
		"who knows WireGuard": {
			tunnels, map[string]string{"pkg/vpn/gateway/a.go": `var wireGuardServer int`}, "wireGuardServer: only",
		},
		"who may know WireGuard": {tunnels, map[string]string{
			"pkg/vpn/wireguard/demux/a.go": `var wireGuard int`, "cmd/vpn/wireguard.go": `var wireGuard int`,
			"pkg/gardenlet/config/a.go": `type A struct { WireGuardPort int }`,
			"pkg/vpn/a_test.go":         `var wireGuard int`,
		}, ""},
		"two names": {names, map[string]string{
			"pkg/a/a.go": `import one "x.org/y"`, "pkg/b/b.go": `import one "x.org/y"`,
			"pkg/c/c.go": `import two "x.org/y"`,
		}, "x.org/y is called two here and one elsewhere"},
		"another name, as that one is taken": {names, map[string]string{
			"pkg/a/a.go": `import "x.org/y"`, "pkg/b/b.go": `import "x.org/y"`,
			"pkg/c/c.go": `import ("z.org/y"; two "x.org/y")`,
		}, ""},
		"ptr.To": {
			pointers, map[string]string{"a.go": `import "k8s.io/utils/ptr"; var a = ptr.To[int32](1)`}, "new(value)",
		},
		"another ptr.To": {pointers, map[string]string{"a.go": `import "x.org/ptr"; var a = ptr.To(1)`}, ""},
		"a failure": {
			wording, map[string]string{"a.go": `import "errors"; var a = errors.New("failed to read x")`},
			"not that it failed",
		},
		"a sentence": {
			wording, map[string]string{"a.go": `import "errors"; var a = errors.New("Reading x")`}, "small letter",
		},
		"a period": {
			wording, map[string]string{"a.go": `import "errors"; var a = errors.New("reading x.")`}, "no period",
		},
		"a lost cause": {
			wording, map[string]string{
				"a.go": `import "fmt"; func f(err error) error { return fmt.Errorf("%d: %v", 1, err.Error()) }`,
			}, "%w",
		},
		"an order": {
			wording, map[string]string{
				"a.go": `import "fmt"; func f(err error) error { return fmt.Errorf("list shoots: %w", err) }`,
			}, "what was being done",
		},
		"an order, after its subject": {
			wording, map[string]string{
				"a.go": `import "fmt"; func f(err error) error { return fmt.Errorf("Shoot %s: write status: %w", "x", err) }`,
			}, "what was being done",
		},
		"an order to who reads it": {
			wording, map[string]string{
				"a.go": `import "fmt"; func f(n int) error { return fmt.Errorf("%d is not there: add it", n) }`,
			}, "",
		},
		"a gerund, and a noun that could be a verb": {
			wording, map[string]string{
				"a.go": `import "fmt"; func f(err error) error { return fmt.Errorf("release %s: listing its Pods: %w", "x", err) }`,
			}, "",
		},
		"a good error": {
			wording, map[string]string{
				"a.go": `import "fmt"; func f(err error) error { return fmt.Errorf("ManagedResource %s: %w", "x", err) }`,
			}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := test.rule(treeOf(t, test.files))
			if len(found) == 0 != (test.want == "") ||
				!slices.ContainsFunc(found, func(f finding) bool { return strings.Contains(f.text, test.want) }) &&
					test.want != "" {
				t.Errorf("found %+v, want %q", found, test.want)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.go")
	before := `package p

import (
	one "x.org/y"

	"k8s.io/utils/ptr"
)

var a, b = ptr.To[int32](one.A(2)), ptr.To("trellis.garden/z")

func f(one struct{ A int }) int { return one.A }
`
	after := `package p

import (
	"x.org/y"

	zv1 "github.com/trellis-garden/trellis/pkg/apis/z/v1"
)

var a, b = new(int32(y.A(2))), new(zv1.Z)

func f(one struct{ A int }) int { return one.A }
`
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	tr := tree{files: token.NewFileSet(), declared: map[string]map[string]bool{}}
	if err := tr.parse(path, nil); err != nil {
		t.Fatal(err)
	}
	s := tr.sources[0]
	if err := tr.parse("pkg/apis/z/v1/z.go", "package v1\nconst Z = \"trellis.garden/z\""); err != nil {
		t.Fatal(err)
	}
	wanted := map[string]string{"x.org/y": "y", pointerPackage: "ptr", module + "/pkg/apis/z/v1": "zv1"}
	edits := slices.Concat(renames(tr, s, wanted), pointerEdits(tr, s.file), keyEdits(tr, wanted)[path])
	if err := rewrite(path, edits); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != after {
		t.Errorf("got\n%s\nwant\n%s\nerror %v", got, after, err)
	}
}
