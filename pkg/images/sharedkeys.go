package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// product is what is made once for all clones of a user: files of a folder.
type product struct {
	// name is for people.
	name string
	// key changes with all that the files depend on. Without one they are made for this clone alone.
	key   string
	dir   string
	files []string
}

// openShared opens the shared folder. Without it the build is no other one but slower, which is told.
func (b *builder) openShared() {
	var err error
	if b.shared, err = openShared(b.Shared); err != nil {
		step := fmt.Sprintf("nothing is taken from other clones: %v", err)
		b.report(step, false, 0, nil)
		b.report(step, true, 0, err)
	}
}

// provide sees to it that a product is there: it is left if it is as it was, and else taken from the shared folder, or
// made and kept there.
func (b *builder) provide(ctx context.Context, p product, build func(context.Context) error) error {
	stamp := filepath.Join(b.Cache, "stamps", "program-"+p.files[0])
	if state, err := p.state(); err == nil && p.key != "" {
		if known, err := os.ReadFile(stamp); err == nil && string(known) == state {
			return nil
		}
	}
	if !b.takeShared(p.name, p.key, p.dir) {
		if err := build(ctx); err != nil {
			return err
		}
		b.keepShared(p.name, p.key, p.paths()...)
	}
	state, err := p.state()
	if err != nil {
		return err
	}
	return writeFileAtomically(stamp, []byte(state))
}

func (p product) paths() []string {
	var paths []string
	for _, file := range p.files {
		paths = append(paths, filepath.Join(p.dir, file))
	}
	return paths
}

// state changes with the key of a product and with its files.
func (p product) state() (string, error) {
	inputs, err := fileInputs(p.paths()...)
	return checksum(append(inputs, p.key)...), err
}

// takeShared takes the files of a key from the shared folder. What cannot be taken is made.
func (b *builder) takeShared(name, key, dir string) bool {
	if key == "" {
		return false
	}
	start := time.Now()
	taken, err := b.shared.take(key, dir)
	if err != nil {
		b.log(fmt.Sprintf("%s is built, as what another clone left cannot be taken: %v", name, err))
	}
	if taken {
		step := name + ", from the cache"
		b.report(step, false, 0, nil)
		b.report(step, true, time.Since(start), nil)
	}
	return taken
}

// keepShared keeps files for other clones. This one needs them no more, so that a failure is only told.
func (b *builder) keepShared(name, key string, paths ...string) {
	if key == "" {
		return
	}
	if err := b.shared.keep(key, paths...); err != nil {
		b.log(fmt.Sprintf("%s is not kept for other clones: %v", name, err))
	}
}

// keyOf is the key of a product that depends on inputs; without inputs it has none.
func keyOf(inputs []string) string {
	if inputs == nil {
		return ""
	}
	return checksum(inputs...)
}

// moduleKey changes with all that the programs of a module depend on. What others wrote is named by go.mod and go.sum.
func (b *builder) moduleKey(ctx context.Context, m Module, flags []string) (string, error) {
	dir := filepath.Join(b.Root, m.Dir)
	inputs, err := goInputs(ctx, dir, moduleEnvironment)
	if err != nil || inputs == nil {
		return "", err
	}
	files, err := filesBelow(dir)
	if err != nil {
		return "", err
	}
	replaced, err := b.replacedFiles(ctx, m, flags)
	if err != nil {
		return "", err
	}
	sums, err := b.fileSums(append(files, replaced...))
	if err != nil {
		return "", err
	}
	return keyOf(slices.Concat([]string{"module", m.Dir, m.linkFlags()}, flags, m.Packages, m.outputs(), inputs,
		sums)), nil
}

// goSettings are settings of the go command, and of a module, that programs depend on.
var goSettings = []string{
	"GOVERSION", "GOOS", "GOARCH", "GO386", "GOAMD64", "GOARM", "GOARM64", "GOMIPS", "GOMIPS64", "GOPPC64", "GORISCV64",
	"GOWASM", "GOEXPERIMENT", "GOFIPS140", "GODEBUG", "GOFLAGS", "CGO_ENABLED",
}

// flagsWithFiles name files that programs depend on.
var flagsWithFiles = []string{"-modfile", "-overlay", "-pgo", "-toolexec"}

// goInputs are the settings of the go command in a folder; none if flags for all commands name files: what is in those
// is not known here.
func goInputs(ctx context.Context, dir string, environment []string) ([]string, error) {
	output, err := goOutput(ctx, dir, environment, append([]string{"env", "-json"}, goSettings...)...)
	if err != nil {
		return nil, err
	}
	var settings map[string]string
	if err := json.Unmarshal(output, &settings); err != nil {
		return nil, fmt.Errorf("reading what go env says: %w", err)
	}
	return inputsOf(settings), nil
}

func inputsOf(settings map[string]string) (inputs []string) {
	for _, flag := range flagsWithFiles {
		if strings.Contains(settings["GOFLAGS"], flag) {
			return nil
		}
	}
	for _, name := range goSettings {
		inputs = append(inputs, name+"="+settings[name])
	}
	return inputs
}

func goOutput(ctx context.Context, dir string, environment []string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir, command.Env = dir, append(os.Environ(), environment...)
	output, err := command.Output()
	if exit := (&exec.ExitError{}); errors.As(err, &exit) {
		return nil, fmt.Errorf("go %s in %s: %w\n%s", arguments[0], dir, err, exit.Stderr)
	}
	return output, err
}

// filesBelow are the files of a module that its programs may be compiled from.
func filesBelow(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasSuffix(path, "_test.go") {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

// replacedFiles are those of packages that a module is compiled from and that lie beside it, as its go.mod replaces
// their module by a folder.
func (b *builder) replacedFiles(ctx context.Context, m Module, flags []string) ([]string, error) {
	dir := filepath.Join(b.Root, m.Dir)
	var mod struct {
		Replace []struct{ New struct{ Version string } }
	}
	output, err := goOutput(ctx, dir, moduleEnvironment, "mod", "edit", "-json", b.modFile(m))
	if err == nil {
		err = json.Unmarshal(output, &mod)
	}
	if err != nil {
		return nil, err
	}
	local := func(r struct{ New struct{ Version string } }) bool { return r.New.Version == "" }
	if !slices.ContainsFunc(mod.Replace, local) {
		return nil, nil
	}
	output, err = goOutput(ctx, dir, moduleEnvironment,
		slices.Concat([]string{"list", "-deps", "-json=Dir,EmbedFiles,Module"}, flags, m.Packages)...)
	if err != nil {
		return nil, err
	}
	return filesOfReplaced(output)
}

// listedPackage is a package as go list tells it.
type listedPackage struct {
	Dir        string
	EmbedFiles []string
	Module     *struct {
		GoMod   string
		Replace *struct{ Version string }
	}
}

// filesOfReplaced are the files of the packages that go list tells whose modules are folders.
func filesOfReplaced(list []byte) (files []string, err error) {
	for decoder := json.NewDecoder(strings.NewReader(string(list))); ; {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading what go list says: %w", err)
		}
		if p.Module == nil || p.Module.Replace == nil || p.Module.Replace.Version != "" {
			continue
		}
		entries, err := os.ReadDir(p.Dir)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if !entry.IsDir() && !strings.HasSuffix(entry.Name(), "_test.go") {
				files = append(files, filepath.Join(p.Dir, entry.Name()))
			}
		}
		for _, name := range p.EmbedFiles {
			files = append(files, filepath.Join(p.Dir, name))
		}
		files = append(files, p.Module.GoMod)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// fileSums describes files by their paths in the repository and what they hold.
func (b *builder) fileSums(files []string) ([]string, error) {
	var sums []string
	for _, path := range files {
		data, err := os.ReadFile(path)
		// A link to nowhere, as an editor leaves beside a file that it has open, or a file that goes just now.
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(b.Root, path)
		if err != nil {
			return nil, err
		}
		sums = append(sums, name, checksum(string(data)))
	}
	return sums, nil
}

// debianInputs are the release of Debian and where its packages come from, as the files of /etc say. As nothing there
// changes when Debian mends its packages, what depends on them is made anew every fortnight.
func debianInputs(etc string, now time.Time) ([]string, error) {
	inputs := []string{runtime.GOARCH, fmt.Sprint("fortnight ", now.Unix()/int64(sharedFor/time.Second))}
	for _, pattern := range []string{
		"os-release", "apt/sources.list", "apt/sources.list.d/*", "apt/preferences", "apt/preferences.d/*",
	} {
		paths, err := filepath.Glob(filepath.Join(etc, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
				continue
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, strings.TrimPrefix(path, etc), string(data))
		}
	}
	return inputs, nil
}
