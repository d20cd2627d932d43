//go:build e2e

package e2e

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// module is that of the repository.
const module = "github.com/trellis-garden/trellis"

// codeFolders are the folders of the repository with Go code, each with whether a landscape, or these tests, are made
// of that.
type codeFolders map[string]bool

// leavesOut tells whether a file belongs to code that no landscape is made of: to that of the next folder above with
// any. A file without such a folder, as in one that is gone, belongs to none.
func (c codeFolders) leavesOut(file string) bool {
	for folder := path.Dir(file); folder != "."; folder = path.Dir(folder) {
		if isUsed, ok := c[folder]; ok {
			return !isUsed
		}
	}
	return false
}

// landscapeCode is found out once.
var landscapeCode = sync.OnceValues(func() (codeFolders, error) {
	files, err := output("git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.go", "*"+modFile)
	if err != nil {
		return nil, err
	}
	code := codeFolders{}
	for _, file := range strings.Fields(files) {
		code[path.Dir(file)] = false
	}
	packages, err := landscapePackages("{{.ImportPath}}")
	if err != nil {
		return nil, err
	}
	for _, name := range packages {
		if own, ok := strings.CutPrefix(name, module+"/"); ok {
			code[own] = true
		}
	}
	return code, nil
})

// landscapePackages tells of the packages that the programs of a landscape and these tests are made of, a word of
// each: of those of the repository's module, and those of images that use it.
func landscapePackages(format string) ([]string, error) {
	programs, err := landscapePrograms()
	if err != nil {
		return nil, err
	}
	list := []string{"list", "-deps", "-f=" + format}
	lists := [][]string{
		slices.Concat(list, programs), slices.Concat(list, []string{"-test", "-tags=e2e", "./" + testFolder}),
	}
	modules, err := modulesOfImages()
	if err != nil {
		return nil, err
	}
	for _, folder := range modules {
		lists = append(lists, slices.Concat([]string{"-C", folder}, list, []string{"./..."}))
	}
	var packages []string
	for _, arguments := range lists {
		out, err := output("go", arguments...)
		if err != nil {
			return nil, err
		}
		packages = append(packages, strings.Fields(out)...)
	}
	return packages, nil
}

// landscapePrograms are the programs of the repository's module, but for those that tests of what people have name.
func landscapePrograms() ([]string, error) {
	out, err := output("go", "list", `-f={{if eq .Name "main"}}{{.ImportPath}}{{end}}`, "./cmd/...", "./extensions/...")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Fields(out), func(program string) bool {
		return slices.Contains(slices.Concat(forPeople...), strings.TrimPrefix(program, module+"/"))
	}), nil
}

// modulesOfImages are the folders of modules below images that use packages of the repository's own.
func modulesOfImages() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(root, "images", "*", modFile))
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if strings.Contains(string(text), "\nreplace "+module+" => ../..\n") {
			folders = append(folders, path.Join("images", filepath.Base(filepath.Dir(file))))
		}
	}
	return folders, nil
}

// Programs for people, and they alone, are none of a landscape, and a module of images that uses the repository's has
// its packages count.
func TestLandscapePrograms(t *testing.T) {
	programs, err := landscapePrograms()
	if err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]bool{
		"cmd/gardenlet": true, "cmd/landscape": true, "extensions/provider-local/cmd/cni-local-cloud": true,
		"cmd/trellisctl": false, "cmd/dashboard": false,
	} {
		if got := slices.Contains(programs, module+"/"+program); got != want {
			t.Errorf("%s: got %t, want %t", program, got, want)
		}
	}
	if modules, err := modulesOfImages(); err != nil || !slices.Equal(modules, []string{"images/objectstore"}) {
		t.Errorf("got modules %v, %v", modules, err)
	}
}
