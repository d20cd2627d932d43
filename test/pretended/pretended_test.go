// Package pretended adds a component and a provider to a copy of the tree, as docs/adding-a-component.md and
// docs/extending.md show it, has the tests there pass, and counts what was touched for that.
package pretended

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// mostFiles is how many files a commit may touch beside its own package, and golden files that are written anew.
const mostFiles = 3

// commit is what somebody would write who adds something.
type commit struct {
	// folder below testdata has the files of the package.
	folder string
	// own is where they lie.
	own string
	// edits are changes of other files.
	edits []edit
	// page shows what is touched, named as the page names it, by paths.
	page  string
	shown map[string]string
}

// edit has lines inserted into a file, before the one that begins with a text, or puts a text in place of another one
// in that line.
type edit struct {
	path, line       string
	insert           string
	replace, replica string
}

const (
	list         = "pkg/gardenlet/shoot/components/components.go"
	vector       = "charts/images.yaml"
	network      = "docs/security-network.md"
	extensions   = "pkg/images/extensions.go"
	withExample  = "`kube-scheduler`, `example-controller`, "
	controllers  = "| `shoot` | `kube-scheduler`, `cluster-autoscaler`, `machine-controller-manager` | "
	schedulerRow = "`kube-scheduler`, "
)

var component = commit{
	folder: "testdata/component", own: "pkg/component/examplecontroller/",
	edits: []edit{
		{
			path: list, line: "\t\"github.com/trellis-garden/trellis/pkg/component/kubeapiserver\"",
			insert: "\t\"github.com/trellis-garden/trellis/pkg/component/examplecontroller\"\n",
		},
		{
			path: list, line: "\t{Name: \"machine-controller-manager\"",
			insert: "\t{\n" +
				"\t\tName: examplecontroller.Name, Images: []string{examplecontroller.Name}, LeftOut: isWorkerless,\n" +
				"\t\tPriorityClass: component.PriorityControlPlane300,\n" +
				"\t\tRecipe:        inSeed(examplecontroller.Decide, examplecontroller.New),\n" +
				"\t},\n",
		},
		{
			path: vector, line: "# Kubernetes:",
			insert: "- name: example-controller\n  repository: registry.example/example-controller\n  tag: v1.0.0\n",
		},
		{path: network, line: controllers + "`own kube-apiserver`", replace: schedulerRow, replica: withExample},
		{path: network, line: controllers + "`dns`", replace: schedulerRow, replica: withExample},
	},
	page:  "docs/adding-a-component.md",
	shown: map[string]string{list: "`components.go`", vector: "`charts/images.yaml`", network: "`security-network.md`"},
}

var provider = commit{
	folder: "testdata/provider", own: "extensions/provider-pretended/",
	edits: []edit{
		{
			path: extensions, line: "\t{Name: \"os-debian\"",
			insert: "\t{Name: \"provider-pretended\", Dir: \"extensions/provider-pretended\"},\n",
		},
		{
			path: vector, line: "- name: machine-debian",
			insert: "- name: provider-pretended\n  repository: ghcr.io/trellis-garden/provider-pretended\n",
		},
		{
			path: network, line: "| `extension` | `provider-local`",
			insert: "| `extension` | `provider-pretended` | `public`, `garden gateway` | `443` | " +
				"the API of the cloud |\n",
		},
	},
	page: "docs/extending.md",
	// The page has another example, with more controllers.
	shown: map[string]string{
		extensions: "| `pkg/images/extensions.go` |", vector: "| `charts/images.yaml` |",
		network: "| `docs/security-network.md` |",
	},
}

// goldens are the files that are written anew for a component, and how its page says how many they are.
var goldens = map[string]struct {
	count int
	shown string
}{
	"pkg/gardenlet/shoot/plan/testdata": {5, "| golden files of the Plan | the five of whole shoots |"},
	"pkg/gardenlet/shoot/testdata":      {7, "| golden files of the flow | the seven of reconciliation and hibernation |"},
}

// A component, and a provider, is its own package and at most three files, and passes the tests.
func TestPretendedCommits(t *testing.T) {
	tree := filepath.Join(t.TempDir(), "tree")
	copyTree(t, tree)
	for _, c := range []commit{component, provider} {
		c.apply(t, tree)
	}

	run(t, tree, true, "test", "./pkg/gardenlet/shoot", "./pkg/gardenlet/shoot/plan")
	run(t, tree, false, "build", "-o", t.TempDir()+"/", "./extensions/provider-pretended/cmd/provider-pretended")
	run(t, tree, false, "test", "./pkg/component/examplecontroller", "./extensions/provider-pretended/...",
		"./pkg/gardenlet/shoot/components", "./docs")
	// Others there build images, which are not concerned.
	run(t, tree, false, "test", "-run", "Extension", "./pkg/images")

	touched := differing(t, tree)
	for _, c := range []commit{component, provider} {
		others := slices.DeleteFunc(slices.Clone(touched), func(path string) bool { return !c.touches(path) })
		if len(others) == 0 || len(others) > mostFiles {
			t.Errorf("%s needs changes of %q beside its package, want %d at most", c.own, others, mostFiles)
		}
		c.isShown(t)
	}
	written := map[string][]string{}
	for _, name := range touched {
		folder := path.Dir(name)
		switch _, golden := goldens[folder]; {
		case strings.HasPrefix(name, component.own), strings.HasPrefix(name, provider.own):
		case component.touches(name), provider.touches(name):
		case golden:
			written[folder] = append(written[folder], path.Base(name))
		default:
			t.Errorf("the tests want another %s", name)
		}
	}
	page := string(read(t, filepath.Join(root, component.page)))
	for folder, want := range goldens {
		if got := written[folder]; len(got) != want.count || !strings.Contains(page, want.shown) {
			t.Errorf("%q are written anew in %s, want %d files, and %q in %s", got, folder, want.count, want.shown,
				component.page)
		}
	}
}

// touches says whether the commit changes a file beside its package.
func (c commit) touches(path string) bool {
	return slices.ContainsFunc(c.edits, func(e edit) bool { return e.path == path })
}

// isShown checks that the page names all that is touched.
func (c commit) isShown(t *testing.T) {
	t.Helper()
	page := string(read(t, filepath.Join(root, c.page)))
	for _, e := range c.edits {
		if name := c.shown[e.path]; name == "" || !strings.Contains(page, name) {
			t.Errorf("%s does not show that %s is touched (%q)", c.page, e.path, name)
		}
	}
}

// apply writes the commit into a copy of the tree.
func (c commit) apply(t *testing.T, tree string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(tree, c.own)); err == nil {
		t.Fatalf("the tree has %s already", c.own)
	}
	if err := os.CopyFS(tree, os.DirFS(c.folder)); err != nil {
		t.Fatal(err)
	}
	for _, e := range c.edits {
		name := filepath.Join(tree, e.path)
		text, done := e.in(string(read(t, name)))
		if !done {
			t.Fatalf("%s has no line that begins with %q and has %q", e.path, e.line, e.replace)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// in makes the change in a text, once.
func (e edit) in(text string) (changed string, done bool) {
	var result strings.Builder
	for line := range strings.Lines(text) {
		if !done && strings.HasPrefix(line, e.line) && strings.Contains(line, e.replace) {
			done = true
			result.WriteString(e.insert)
			line = strings.Replace(line, e.replace, e.replica, 1)
		}
		result.WriteString(line)
	}
	return result.String(), done
}

// apart is what is built, or belongs to git, landscapes and tools.
var apart = regexp.MustCompile(`^(bin|node_modules|\.git|\.cache|\.landscape.*)$`)

// eachFile calls a function for the files of a tree, but what is built, by their paths in it.
func eachFile(t *testing.T, tree string, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case apart.MatchString(entry.Name()) && entry.IsDir():
			return fs.SkipDir
		case apart.MatchString(entry.Name()) || !entry.Type().IsRegular():
			return nil
		}
		relative, err := filepath.Rel(tree, path)
		if err == nil {
			visit(filepath.ToSlash(relative))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func copyTree(t *testing.T, to string) {
	t.Helper()
	eachFile(t, root, func(name string) {
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, read(t, filepath.Join(root, name)), 0o644); err != nil {
			t.Fatal(err)
		}
	})
}

// differing lists the files that a copy has and the tree has not, or not so.
func differing(t *testing.T, tree string) []string {
	t.Helper()
	var found []string
	eachFile(t, tree, func(name string) {
		before, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !bytes.Equal(before, read(t, filepath.Join(tree, name))) {
			found = append(found, name)
		}
	})
	return found
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// run has the Go command do something in a copy of the tree, with the flags by which it finds there what was built for
// the tree. Golden files are written anew if they are to be.
func run(t *testing.T, tree string, update bool, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", arguments...)
	command.Dir = tree
	command.Env = append(os.Environ(), "GOFLAGS=-trimpath -ldflags=-s", "CGO_ENABLED=0", "UPDATE_GOLDEN=")
	if arguments[0] == "test" {
		command.Args = slices.Insert(command.Args, 2, "-vet=off")
	}
	if update {
		command.Env = append(command.Env, "UPDATE_GOLDEN=1")
	}
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("go %s, in a tree with both: %v\n%s", strings.Join(arguments, " "), err, output)
	}
}
