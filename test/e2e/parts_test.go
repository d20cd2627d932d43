//go:build e2e

package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What some tests cover, as files and folders of the repository; "." has all of it, but for what a "!" stands before,
// and for Go code that no landscape is made of (landscapeCode). docs/testing.md has the rule.
var (
	// coveredByAll is what every test depends on, but for packages that the tests which cover clusters use as well.
	coveredByAll = []string{".ci", makefile, modFile, "images", "!images/dashboard", "test/prober"}
	// selection is what chooses the tests, and their order. None of them depends on it.
	selection = []string{
		"test/e2e/changes_test.go", "test/e2e/code_test.go", "test/e2e/parts_test.go", "test/e2e/rows_test.go",
	}
	// clusters is whatever garden, seeds, shoots and fleets are made of.
	clusters = []string{
		".", "!.gitignore", "!LICENSE", "!Makefile", "!README.md", "!dashboard", "!docs", "!go.mod", "!go.sum", "!hack",
		"!images/dashboard", "!pkg/images/browser.go", "!pkg/images/npm.go", "!pkg/images/pages.go",
		"!staticcheck.conf", "!test/browser", "!test/e2e/browser_test.go", "!test/e2e/changes_test.go",
		"!test/e2e/code_test.go", "!test/e2e/dashboard_test.go", "!test/e2e/hibernation_test.go",
		"!test/e2e/parts_test.go", "!test/e2e/rows_test.go", "!test/e2e/ssh_test.go", "!test/e2e/terminal_test.go",
		"!test/e2e/use_test.go",
	}
	// shoots is the same without what only fleets have.
	shoots       = slices.Concat(clusters, []string{"!cmd/federation", "!extensions/federation", "!pkg/federation"})
	controlPlane = []string{
		"cmd/etcd-steward", "cmd/gardenlet", "cmd/vpn", "pkg/component", "pkg/etcd", "pkg/gardenlet", "pkg/vpn",
		"test/e2e/highavailability_test.go",
	}
	credentials = []string{
		"cmd/etcd-steward", "extensions/pkg", "pkg/component", "pkg/encryption", "pkg/etcd", "pkg/gardenlet",
		"pkg/nodeagent", "pkg/resourcemanager", "pkg/secrets",
	}
	backups = []string{
		"cmd/etcd-steward", "pkg/component/etcd", "pkg/etcd", "pkg/gardenlet", "test/e2e/drills_test.go",
	}
	gardenBackups = slices.Concat(backups, []string{
		"extensions/provider-local", "images/objectstore", "pkg/landscape", "test/e2e/withoutgarden_test.go",
	})
	autoscaling = []string{
		"cmd/cluster-autoscaler", "extensions/pkg/worker", "extensions/provider-local", "pkg/clusterautoscaler",
		"pkg/component/clusterautoscaler", "test/e2e/autoscaler_test.go",
	}
	federation = []string{
		"cmd/federation", "extensions/federation", "pkg/apis/apps", "pkg/apis/autoscaling", "pkg/apis/cluster",
		"pkg/apis/config", "pkg/apis/fleet", "pkg/apis/fleetscheme", "pkg/apis/policy", "pkg/apis/work", "pkg/federation",
		"test/e2e/fleetfailover_test.go",
	}
	growth   = slices.Concat(autoscaling, federation, []string{"test/e2e/fleetgrowth_test.go"})
	commands = []string{
		"cmd/trellisctl", "pkg/apis/fleetscheme", "pkg/trellisctl", "test/e2e/hibernation_test.go",
		"test/e2e/use_test.go",
	}
	logins = slices.Concat(commands, []string{
		"cmd/gardenlet", "cmd/node-agent", "extensions/provider-local", "pkg/bastionaccess",
		"pkg/component/operatingsystemconfig", "pkg/gardenlet/bastion", "pkg/images", "pkg/landscape", "pkg/nodeagent",
		"test/e2e/ssh_test.go",
	})
	managedSeeds = []string{
		"charts", "cmd/gardenlet", "pkg/apis/seedmanagement", "pkg/controllermanager", "pkg/extensionuse",
		"pkg/gardenlet", "pkg/gardenletconfig", "pkg/helm", "pkg/managedresources", "test/e2e/managedseed_test.go",
	}
	landscapes = []string{
		"cmd/landscape", "hack/host-state.sh", "landscape", "pkg/images", "pkg/landscape", "test/e2e/second_test.go",
	}
	// dashboard is what people have in the browser, and the server and issuer behind it.
	dashboard = []string{
		"charts/garden", "cmd/dashboard", "dashboard", "extensions/provider-local/charts/local-issuer",
		"extensions/provider-local/pkg/issuer", "images/dashboard", "pkg/dashboard", "pkg/images/browser.go",
		"pkg/images/npm.go", "pkg/images/pages.go", "pkg/landscape/dashboard.go", "test/browser",
		"test/e2e/browser_test.go", "test/e2e/dashboard_test.go", "test/e2e/terminal_test.go",
	}
	// otherTargets are tests that `make test-e2e` leaves to others.
	otherTargets = []string{
		"test/e2e/inplace_test.go", "test/e2e/lostseed_test.go", "test/e2e/nodes_test.go", "test/e2e/outage_test.go",
		"test/e2e/upgrade_test.go",
	}
	// forPeople are parts whose programs people have. A landscape is not made of these.
	forPeople = [][]string{commands, dashboard}
	// parts are all that tests say to cover.
	parts = [][]string{
		selection, clusters, shoots, commands, logins, controlPlane, credentials, backups, gardenBackups, autoscaling,
		federation, growth, managedSeeds, landscapes, dashboard, otherTargets,
	}
)

// testFolder is where these tests lie. A file there that is in a part counts for the tests that cover the part, each
// other one for all.
const testFolder = "test/e2e/"

// inParts tells whether a part has this file of testFolder.
func inParts(file string) bool {
	return slices.ContainsFunc(parts, func(part []string) bool { return slices.Contains(part, file) })
}

// whenChanged is a test that is skipped when nothing of what it covers has changed.
func whenChanged(covers []string, run func(t *testing.T)) func(t *testing.T) {
	return whenAnyChanged([][]string{covers}, run)
}

// whenAnyChanged is the same for a test that covers several parts.
func whenAnyChanged(covers [][]string, run func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) {
		if os.Getenv(changedSinceEnv) != "" {
			changed, err := changedFiles()
			if err != nil {
				t.Fatal(err)
			}
			code, err := landscapeCode()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(covers, func(part []string) bool { return counts(changed, part, code) }) {
				t.Skipf("nothing has changed since %s of what it covers: %s", os.Getenv(changedSinceEnv),
					strings.Join(slices.Concat(covers...), ", "))
			}
		}
		run(t)
	}
}

// counts tells whether one of the changed files is of what a test covers, or of what all depend on.
func counts(changed, covers []string, code codeFolders) bool {
	ofAll := func(file string) bool { return strings.HasPrefix(file, testFolder) && !inParts(file) }
	changed = slices.DeleteFunc(slices.Clone(changed), ofOtherTests)
	return covered(changed, coveredByAll, code) || covered(changed, covers, code) || slices.ContainsFunc(changed, ofAll)
}

// ofOtherTests tells whether a file is of tests that lie beside what they test. Nothing that runs is made of it.
func ofOtherTests(file string) bool {
	return !strings.HasPrefix(file, testFolder) &&
		(strings.HasSuffix(file, "_test.go") || slices.Contains(strings.Split(file, "/"), "testdata"))
}

// covered tells whether a file lies in one of the folders, or is one of them, and in none that is left out.
func covered(files, folders []string, code codeFolders) bool {
	in := func(file, folder string) bool {
		return folder == "." && !code.leavesOut(file) || file == folder || strings.HasPrefix(file, folder+"/")
	}
	return slices.ContainsFunc(files, func(file string) bool {
		isLeftOut := slices.ContainsFunc(folders, func(folder string) bool {
			folder, leavesOut := strings.CutPrefix(folder, "!")
			return leavesOut && in(file, folder)
		})
		return !isLeftOut && slices.ContainsFunc(folders, func(folder string) bool { return in(file, folder) })
	})
}

func TestCovered(t *testing.T) {
	code, err := landscapeCode()
	if err != nil {
		t.Fatal(err)
	}
	some := slices.Concat(backups, landscapes)
	for _, test := range []struct {
		file   string
		covers []string
		want   bool
	}{
		{"pkg/etcd/backup/chain.go", some, true}, {"hack/host-state.sh", some, true},
		{"pkg/etcdother/x.go", some, false}, {"docs/testing.md", some, false}, {"go.mod", some, true},
		{"pkg/etcd/backup/chain_test.go", some, false}, {"pkg/etcd/testdata/wal", some, false},
		{"test/e2e/second_test.go", some, true}, {"test/e2e/managedseed_test.go", some, false},
		{"test/e2e/landscape_test.go", some, true}, {"test/e2e/testdata/webprober.yaml", some, true},
		{"pkg/new/x.go", clusters, true}, {"cmd/new/main.go", shoots, true}, {"test/prober/prober.go", shoots, true},
		{"pkg/federation/core/x.go", clusters, true}, {"pkg/federation/core/x.go", shoots, false},
		{"pkg/apis/core/x.go", clusters, true}, {"pkg/apis/core/x.go", shoots, true}, {"pkg/apis/core/x.go", backups, false},
		{"pkg/trellisctl/list.go", clusters, false}, {"pkg/dashboard/server.go", clusters, false},
		{"dashboard/src/main.tsx", shoots, false}, {"docs/testing.md", clusters, false},
		{"go.mod", shoots, true}, {"go.sum", shoots, false}, {"test/e2e/managedseed_test.go", clusters, true},
		{"test/e2e/rows_test.go", clusters, false}, {"test/e2e/rows_test.go", commands, false},
		{"pkg/trellisctl/list.go", commands, true}, {"pkg/trellisctl/gone/x.go", clusters, false},
		{"cmd/dashboard/main.go", clusters, false}, {"cmd/gardenlet/main.go", shoots, true},
		{"pkg/federation/plan/plan.go", clusters, false}, {"pkg/federation/plan/plan.go", federation, true},
		{"pkg/apis/fleetscheme/x.go", clusters, true}, {"charts/charts.go", clusters, true},
		{"test/attack/x.go", clusters, false}, {"test/objectstores/go.mod", clusters, false},
		{"images/containerd/go.mod", clusters, true}, {"pkg/errorcodes/errorcodes.go", clusters, true},
		{"test/browser/src/look.ts", clusters, false}, {"test/browser/src/look.ts", dashboard, true},
		{"dashboard/src/main.tsx", dashboard, true}, {"images/dashboard/tools.json", clusters, false},
		{"images/dashboard/tools.json", dashboard, true}, {"pkg/gardenlet/x.go", dashboard, false},
		{"images/objectstore/main.go", dashboard, true}, {"charts/garden/values.yaml", clusters, true},
		{"test/e2e/dashboard_test.go", clusters, false}, {"test/e2e/dashboard_test.go", dashboard, true},
		{"test/e2e/use_test.go", commands, true}, {"test/e2e/use_test.go", federation, false},
	} {
		if got := counts([]string{"README.md", test.file}, test.covers, code); got != test.want {
			t.Errorf("%s: got %t, want %t for %v", test.file, got, test.want, test.covers)
		}
	}
	for _, path := range slices.Concat(coveredByAll, slices.Concat(parts...)) {
		if _, err := os.Stat(filepath.Join("../..", strings.TrimPrefix(path, "!"))); err != nil {
			t.Errorf("a test covers what is not there: %v", err)
		}
	}
}

// TestFilesOfParts: a file counts for the tests of its parts alone, so that no other file may use what it declares,
// but for the tests themselves, which whenChanged gets.
func TestFilesOfParts(t *testing.T) {
	files := parsedTests(t)
	for name, file := range files {
		if !inParts(testFolder+name) || slices.Contains(selection, testFolder+name) {
			continue
		}
		declared := declaredNames(file)
		for user, other := range files {
			if user == name || mayUse(testFolder+user, testFolder+name) {
				continue
			}
			for _, used := range usedNames(other) {
				if slices.Contains(declared, used) {
					t.Errorf("%s uses %s of %s, which counts for some tests only: declare it elsewhere", user, used,
						name)
				}
			}
		}
	}
}

// mayUse tells whether each part that has the user has what it uses, or it only lists it, or no target runs it beside
// others.
func mayUse(user, used string) bool {
	without := func(part []string) bool { return slices.Contains(part, user) && !slices.Contains(part, used) }
	return slices.Contains(selection, user) || slices.Contains(otherTargets, user) ||
		inParts(user) && !slices.ContainsFunc(parts, without)
}

func parsedTests(t *testing.T) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob("*_test.go")
	if err != nil || len(names) == 0 {
		t.Fatalf("no files: %v", err)
	}
	files := map[string]*ast.File{}
	for _, name := range names {
		if files[name], err = parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// declaredNames are the functions, types, constants and variables of a file, and its methods with a dot.
func declaredNames(file *ast.File) (names []string) {
	for _, declaration := range file.Decls {
		switch declaration := declaration.(type) {
		case *ast.FuncDecl:
			name := declaration.Name.Name
			if declaration.Recv != nil {
				name = "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, spec := range declaration.Specs {
				names = append(names, specNames(spec)...)
			}
		}
	}
	return names
}

func specNames(spec ast.Spec) (names []string) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		names = []string{spec.Name.Name}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// usedNames are all that a file names, what it selects with a dot, but for what it gives to whenChanged.
func usedNames(file *ast.File) (names []string) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CallExpr:
			function, ok := node.Fun.(*ast.Ident)
			return !ok || function.Name != "whenChanged"
		case *ast.SelectorExpr:
			names = append(names, "."+node.Sel.Name)
		case *ast.Ident:
			names = append(names, node.Name)
		}
		return true
	})
	return names
}
