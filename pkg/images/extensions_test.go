package images

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trellis-garden/trellis/pkg/imagevector"
)

const root = "../.."

// partsOf are files that every extension has, below its folder.
func partsOf(e Extension) []string {
	return []string{
		"cmd/" + e.Name + "/main.go", "charts/" + e.Name + "/Chart.yaml", "charts/" + e.Name + "/values.yaml",
		"example/controller-registration.yaml",
	}
}

// Every folder of an extension is in the list, and has what the list promises: a chart, a registration, programs, and
// images in the vector.
func TestExtensionsAreWhole(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(root, "extensions", "*", "charts"))
	if err != nil || len(folders) != len(Extensions) {
		t.Errorf("%d extensions are listed, there are %q (%v)", len(Extensions), folders, err)
	}
	vector, err := imagevector.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range Extensions {
		parts := partsOf(e)
		for _, p := range e.programs() {
			parts = append(parts, "cmd/"+p.name+"/main.go")
		}
		if e.MachineFiles != "" {
			parts = append(parts, e.MachineFiles)
		}
		for _, part := range parts {
			if _, err := os.Stat(filepath.Join(root, e.Dir, part)); err != nil {
				t.Errorf("%s: %v", e.Name, err)
			}
		}
		if _, err := vector.Find(e.Name, imagevector.Version("1.36.3")); err != nil {
			t.Errorf("charts/images.yaml: %v", err)
		}
		for _, m := range e.Modules {
			if _, err := os.Stat(filepath.Join(root, m.Dir, "go.mod")); err != nil {
				t.Errorf("%s: %v", e.Name, err)
			}
		}
		for _, image := range e.Images {
			if !slices.ContainsFunc(slices.Collect(maps.Values(vector)),
				func(s imagevector.Source) bool { return s.Repository+":"+s.Tag == image.Reference }) {
				t.Errorf("charts/images.yaml has no %s, which is built for %s", image.Reference, e.Name)
			}
		}
	}
}

// places are where an extension of this repository is named beside its folder: three at most.
var places = []string{
	"charts/images.yaml", "docs/security-network.md", "docs/security-pods.md", "pkg/images/extensions.go",
}

// words by which an extension is known beside its name and its folder. Those of os-debian and extension-federation have
// none: "debian" is also what images are made of, and "federation" a part of Trellis.
var words = map[string][]string{
	"provider-local": {"local-cloud", "local.provider."}, "networking-flannel": {"flannel"},
}

// exception is a set of files that name extensions, and that a new one does not touch.
type exception struct {
	// extension may be named there; empty is any.
	extension string
	path      *regexp.Regexp
	why       string
}

var exceptions = []exception{
	{"", regexp.MustCompile(`(_test\.go|\.test\.tsx?|/testdata/.+|^test/bench/.+|/plantest\.go)$`),
		"tests take some as examples"},
	{"", regexp.MustCompile(`^docs/extending\.md$`), "the guide takes some as examples"},
	{"networking-flannel", regexp.MustCompile(`^(pkg/apis/.+\.(go|proto)|docs/api/.+\.md)$`), "an example of a type"},
	{"networking-flannel", regexp.MustCompile(`^docs/architecture\.md$`), "a picture of a shoot of the landscape"},
	{"networking-flannel", regexp.MustCompile(`^landscape/local/examples/.+\.yaml$`), "shoots of the landscape"},
	{
		"provider-local", regexp.MustCompile(`^(README|docs/security|extensions/pkg/README)\.md$`),
		"the example of a provider",
	},
	{
		"provider-local", regexp.MustCompile(`^(pkg/landscape/localcloud\.go|docs/contracts/local-landscape\.md|` +
			`landscape/local/examples/workloadidentity\.yaml)$`), "about the local cloud",
	},
	{"provider-local", regexp.MustCompile(`^docs/security-pods\.md$`), "machines of the local cloud are pods"},
	{
		"extension-federation", regexp.MustCompile(`^hack/(generate\.sh|check-generated\.sh|apidocs/openapi/.+)$`),
		"it is the one with an API of its own, in a fleet, for which code is generated",
	},
}

func (x exception) covers(e Extension, path string) bool {
	return (x.extension == "" || x.extension == e.Name) && x.path.MatchString(path)
}

// Adding an extension to this repository is its folder and at most three files. A list of extensions somewhere else,
// or code that knows one of them by name, would be one more to remember.
func TestAnExtensionIsNamedInThreeFiles(t *testing.T) {
	used := make([]bool, len(exceptions))
	for _, e := range Extensions {
		var found []string
		for _, path := range filesWith(t, wordsFor(e)...) {
			i := slices.IndexFunc(exceptions, func(x exception) bool { return x.covers(e, path) })
			switch {
			case isOwn(e, path):
			case i >= 0:
				used[i] = true
			case !slices.Contains(places, path):
				t.Errorf("%s names the extension %s; docs/extending.md promises that only %q do", path, e.Name, places)
			default:
				found = append(found, path)
			}
		}
		if len(found) > 3 {
			t.Errorf("%s is named in %q; docs/extending.md promises that these are three at most", e.Name, found)
		}
	}
	for i, x := range exceptions {
		if !used[i] {
			t.Errorf("the exception %s for %q (%s) is needed no more", x.path, x.extension, x.why)
		}
	}
}

// mostExamples is how many extensions a test takes as examples. One that names more has a list.
const mostExamples = 3

// Tests take extensions as examples. To a list of them a new one would have to be added.
func TestNoTestListsExtensions(t *testing.T) {
	onPurpose := map[string]string{
		"pkg/images/extensions_test.go":                        "says which words stand for which",
		"test/integration/gardenlet/attack_extensions_test.go": "attacks each, and says what each needs",
	}
	namedIn := map[string]int{}
	for _, e := range Extensions {
		for _, path := range filesWith(t, wordsFor(e)...) {
			namedIn[path]++
		}
	}
	for path, n := range namedIn {
		if strings.HasSuffix(path, "_test.go") && n > mostExamples && onPurpose[path] == "" {
			t.Errorf("%s names %d extensions: take Extensions instead", path, n)
		}
	}
	for path := range onPurpose {
		if namedIn[path] <= mostExamples {
			t.Errorf("%s no longer lists extensions", path)
		}
	}
}

func wordsFor(e Extension) []string { return append([]string{e.Name, e.Dir}, words[e.Name]...) }

// isOwn says whether a file is in a folder of an extension, or in that of a module of its own.
func isOwn(e Extension, path string) bool {
	return strings.HasPrefix(path, e.Dir+"/") ||
		slices.ContainsFunc(e.Modules, func(m Module) bool { return strings.HasPrefix(path, m.Dir+"/") })
}

// filesWith lists the files of the repository, but what is built, that have one of some texts.
func filesWith(t *testing.T, texts ...string) []string {
	t.Helper()
	// What is built or belongs to git and landscapes.
	apart := regexp.MustCompile(`^(bin|\.git|\.cache|\.landscape.*)$`)
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case apart.MatchString(relative) && entry.IsDir():
			return fs.SkipDir
		case !entry.Type().IsRegular() || apart.MatchString(relative):
			return nil
		}
		data, err := os.ReadFile(path)
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(string(data), text) }) {
			found = append(found, filepath.ToSlash(relative))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The guide lists what a commit that adds a provider touches. It is what the test above allows, and enough for an
// extension.
func TestTheGuideShowsWhatAnExtensionTouches(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/extending.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## In this repository\n")
	e := Extension{Name: "provider-example", Dir: "extensions/provider-example"}
	line := `{Name: "` + e.Name + `", Dir: "` + e.Dir + `"},`
	if !strings.Contains(section, line) {
		t.Errorf("docs/extending.md does not show %s", line)
	}
	var own, elsewhere []string
	for _, match := range regexp.MustCompile("(?m)^\\| `(\\S+)` \\|").FindAllStringSubmatch(section, -1) {
		if inside, ok := strings.CutPrefix(match[1], e.Dir+"/"); ok {
			own = append(own, inside)
		} else {
			elsewhere = append(elsewhere, match[1])
		}
	}
	for _, part := range partsOf(e) {
		if !slices.Contains(own, part) {
			t.Errorf("docs/extending.md lists no %s/%s", e.Dir, part)
		}
	}
	for _, path := range elsewhere {
		if !slices.Contains(places, path) {
			t.Errorf("docs/extending.md lists a change of %s", path)
		}
	}
	if len(elsewhere) == 0 || len(elsewhere) > 3 {
		t.Errorf("docs/extending.md lists changes of %q beside the folder, want three at most", elsewhere)
	}
}
