// Package docs keeps the documentation true where that can be checked: its links lead somewhere, its documents in YAML
// can be read, and its picture of the architecture has all packages.
package docs

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/trellis-garden/trellis/pkg/apis"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
)

const root = ".."

// pages are the Markdown files of the tree, by their paths from its root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	result := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root &&
			(strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		result[strings.TrimPrefix(path, root+"/")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

var (
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	inline  = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
)

// anchor is the name by which a heading is linked to.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

func TestLinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	anchors := map[string]map[string]bool{}
	for path, text := range all {
		anchors[path] = map[string]bool{}
		for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			anchors[path][anchor(match[1])] = true
		}
	}
	for path, text := range all {
		for _, match := range link.FindAllStringSubmatch(inline.ReplaceAllString(fenced.ReplaceAllString(text, ""), ""),
			-1) {
			target, err := url.Parse(match[1])
			if err != nil {
				t.Errorf("%s: link %s: %v", path, match[1], err)
				continue
			}
			if target.Scheme != "" {
				continue
			}
			page := path
			if target.Path != "" {
				page = filepath.Join(filepath.Dir(path), target.Path)
			}
			if _, err := os.Stat(filepath.Join(root, page)); err != nil {
				t.Errorf("%s: link %s: there is no %s", path, match[1], page)
			}
			if target.Fragment != "" && !anchors[page][target.Fragment] {
				t.Errorf("%s: link %s: %s has no heading %q", path, match[1], page, target.Fragment)
			}
		}
	}
}

var example = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// Whole objects must have no field that there isn't.
func TestExamplesCanBeRead(t *testing.T) {
	schemes := []*runtime.Scheme{apis.GardenScheme(), apis.SeedScheme(), fleetscheme.Scheme()}
	for path, text := range pages(t) {
		for _, match := range example.FindAllStringSubmatch(text, -1) {
			reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(match[1])))
			for {
				document, err := reader.Read()
				if errors.Is(err, io.EOF) {
					break
				}
				if err == nil {
					err = readable(document, schemes)
				}
				if err != nil {
					t.Errorf("%s: %v in\n%s", path, err, document)
					break
				}
			}
		}
	}
}

// readable decodes an object whose kind a scheme knows; of anything else it sees that it is YAML.
func readable(document []byte, schemes []*runtime.Scheme) error {
	object := &unstructured.Unstructured{}
	if err := utilyaml.Unmarshal(document, &object.Object); err != nil {
		return err
	}
	for _, scheme := range schemes {
		if scheme.Recognizes(object.GroupVersionKind()) {
			_, _, err := serializer.NewCodecFactory(scheme,
				serializer.EnableStrict).UniversalDeserializer().Decode(document, nil, nil)
			return err
		}
	}
	return nil
}

// listed are the sections of packages.md, and of which folder each lists the packages. Extensions are a list of their
// own, images.Extensions.
var listed = []struct{ section, parent, prefix string }{
	{"Folders and packages", "cmd", ""},
	{"Folders and packages", "pkg", "pkg/"},
	{"Packages of the VPN", "pkg/vpn", ""},
	{"Packages of gardenlet", "pkg/gardenlet", ""},
	{"Packages of gardenlet's shoot controller", "pkg/gardenlet/shoot", ""},
	{"Packages of the federation", "pkg/federation", ""},
	{"Packages of the dashboard", "pkg/dashboard", ""},
	{"Packages for tests", "test", ""},
}

func TestAllPackagesAreListed(t *testing.T) {
	text := pages(t)["docs/packages.md"]
	for _, list := range listed {
		entries, err := os.ReadDir(filepath.Join(root, list.parent))
		if err != nil {
			t.Fatal(err)
		}
		rows := section(t, text, list.section)
		for _, entry := range entries {
			named := strings.Contains(rows, "`"+list.prefix+entry.Name()+"`")
			if entry.IsDir() && entry.Name() != "testdata" && !named {
				t.Errorf("docs/packages.md does not tell of %s/%s below %q", list.parent, entry.Name(), list.section)
			}
		}
	}
}

// A row of the first table names folders by their paths from the root, one of another section packages of its parent.
func TestListedPackagesExist(t *testing.T) {
	text := pages(t)["docs/packages.md"]
	for _, list := range listed {
		parent := list.parent
		if list.section == "Folders and packages" {
			parent = ""
		}
		for _, name := range rowNames(section(t, text, list.section)) {
			path := filepath.Join(root, parent, name)
			if info, err := os.Stat(path); err != nil || !info.IsDir() {
				t.Errorf("docs/packages.md has a row for %q below %q: there is no folder %s", name, list.section, path)
			}
		}
	}
}

// section returns what stands between a heading and the next one.
func section(t *testing.T, text, name string) string {
	t.Helper()
	for _, part := range regexp.MustCompile(`(?m)^#+ +`).Split(text, -1) {
		if title, body, _ := strings.Cut(part, "\n"); title == name {
			return body
		}
	}
	t.Fatalf("docs/packages.md has no section %q", name)
	return ""
}

// rowNames are what the first cells of tables name, up to a part that stands for many, such as <name>.
func rowNames(text string) []string {
	var names []string
	for _, line := range strings.Split(text, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, name := range inline.FindAllString(cells[1], -1) {
			folder, _, _ := strings.Cut(strings.Trim(name, "`"), "<")
			names = append(names, folder)
		}
	}
	return names
}
