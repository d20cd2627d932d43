package images

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
)

const (
	// pagesSource has the sources of the dashboard's pages, pagesTools what they are built with, and pagesTarget is
	// from where cmd/dashboard embeds them.
	pagesSource = "dashboard"
	pagesTools  = "images/dashboard/tools.json"
	pagesTarget = "pkg/dashboard/pages/dist"
	// pagesArchive holds the pages in BinDir.
	pagesArchive = "dashboard-pages.tar"
	// pagesRevision is raised when the functions below change, so that the pages are built anew.
	pagesRevision = "1"
	// leastCompressed is the size from which a file is compressed.
	leastCompressed = 1024
)

// unbuilt are folders of the sources that are not what pages are built from.
var unbuilt = []string{"node_modules", "dist"}

// pagesAPI declares the words and bounds of the API that the pages explain, which their tests compare.
var pagesAPI = []string{
	"pkg/apis/core/v1beta1/common_types.go", "pkg/apis/core/v1beta1/constants.go",
	"pkg/apis/core/v1beta1/shoot_status_types.go", "pkg/operationgraph/graph.go",
}

// compressible are files that get smaller.
var compressible = []string{".html", ".js", ".css", ".json", ".svg", ".txt", ".webmanifest"}

// BuildPages checks and builds the pages of the dashboard alone, unless that was done: Build takes them from there.
func BuildPages(ctx context.Context, options Options) error {
	options.Programs = nil
	b, err := newBuilder(options)
	if err != nil {
		return err
	}
	defer b.shared.close()
	return b.step(ctx, "Pages of the dashboard", b.buildPages)
}

// BuildDashboard provides the dashboard's program, with its pages, and nothing else.
func BuildDashboard(ctx context.Context, options Options) error {
	options.Programs = []string{"dashboard"}
	b, err := newBuilder(options)
	if err != nil {
		return err
	}
	defer b.shared.close()
	if err := b.step(ctx, "Pages of the dashboard", b.buildPages); err != nil {
		return err
	}
	return b.step(ctx, "The dashboard", b.buildPrograms)
}

// buildPages lays the pages of the dashboard to where its program embeds them. They are checked and built with node and
// npm from npm's registry, so that nothing of the like has to be on the machine.
func (b *builder) buildPages(ctx context.Context) error {
	if len(b.Programs) > 0 && !slices.Contains(b.Programs, "dashboard") {
		return nil
	}
	sources, err := treeInputs(filepath.Join(b.Root, pagesSource), unbuilt)
	if err != nil {
		return err
	}
	toolList, err := os.ReadFile(filepath.Join(b.Root, pagesTools))
	if err != nil {
		return err
	}
	for _, file := range pagesAPI {
		content, err := os.ReadFile(filepath.Join(b.Root, file))
		if err != nil {
			return err
		}
		sources = append(sources, file, string(content))
	}
	key := keyOf(append([]string{"dashboard pages", pagesRevision, string(toolList)}, sources...))
	p := product{name: "dashboard pages", key: key, dir: b.binDir(), files: []string{pagesArchive}}
	if err := b.provide(ctx, p, func(ctx context.Context) error { return b.makePages(ctx, toolList) }); err != nil {
		return fmt.Errorf("building %s: %w", pagesSource, err)
	}
	return b.layPages(ctx, key)
}

// treeInputs are names and contents of all files below a folder, but for some of its folders.
func treeInputs(dir string, without []string) ([]string, error) {
	var inputs []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains(without, name) {
			return filepath.SkipDir
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		inputs = append(inputs, name, string(content))
		return err
	})
	return inputs, err
}

// tools build pages, and run tests in a browser.
type tools struct{ Node, NPM npmPackage }

func parseTools(list []byte) (found tools, err error) {
	if err := json.Unmarshal(list, &found); err != nil {
		return found, fmt.Errorf("%s: %w", pagesTools, err)
	}
	return found, nil
}

// makePages builds the pages in the cache, and archives them.
func (b *builder) makePages(ctx context.Context, toolList []byte) error {
	work := filepath.Join(b.Cache, "pages")
	source := filepath.Join(work, "source")
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	npm, err := b.fetchNPM(ctx, work, toolList)
	if err != nil {
		return err
	}
	if err := errors.Join(copyTree(source, filepath.Join(b.Root, pagesSource), unbuilt), b.copyAPI(work)); err != nil {
		return err
	}
	steps := [][]string{{"ci", "--include=dev", "--ignore-scripts"}, {"run", "check"}, {"run", "build"}}
	for _, arguments := range steps {
		if err := npm(ctx, source, arguments...); err != nil {
			return err
		}
	}
	dist := filepath.Join(source, "dist")
	if err := compressPages(dist); err != nil {
		return err
	}
	return errors.Join(archiveTree(dist, b.bin(pagesArchive)), os.RemoveAll(work))
}

// copyAPI lays pagesAPI to where it is beside the sources, as in the repository.
func (b *builder) copyAPI(work string) error {
	for _, file := range pagesAPI {
		content, err := os.ReadFile(filepath.Join(b.Root, file))
		if err != nil {
			return err
		}
		target := filepath.Join(work, file)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// copyTree copies the regular files below a folder, but for some of its folders.
func copyTree(to, from string, without []string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && slices.Contains(without, name):
			return filepath.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), content, 0o644)
	})
}

// compressPages lays a smaller one beside each file, for browsers that take it.
func compressPages(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !slices.Contains(compressible, filepath.Ext(path)) {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil || len(content) < leastCompressed {
			return err
		}
		return errors.Join(
			compressTo(path+".br", content, func(w io.Writer) io.WriteCloser {
				return brotli.NewWriterLevel(w, brotli.BestCompression)
			}),
			compressTo(path+".gz", content, func(w io.Writer) io.WriteCloser {
				writer, _ := gzip.NewWriterLevel(w, gzip.BestCompression) // the level is a good one
				return writer
			}))
	})
}

func compressTo(path string, content []byte, compressor func(io.Writer) io.WriteCloser) error {
	var text strings.Builder
	writer := compressor(&text)
	if _, err := writer.Write(content); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

// layPages makes pagesTarget what the archive has. It is left if it is: the program would be linked anew.
func (b *builder) layPages(ctx context.Context, key string) error {
	target, stamp := filepath.Join(b.Root, pagesTarget), filepath.Join(b.Cache, "stamps", "pages")
	if known, err := os.ReadFile(stamp); err == nil && string(known) == key {
		if _, err := os.Stat(filepath.Join(target, "index.html")); err == nil {
			return nil
		}
	}
	fresh := filepath.Join(b.Cache, "pages")
	if err := b.extractTree(ctx, b.bin(pagesArchive), fresh); err != nil {
		return err
	}
	old, err := os.ReadDir(target)
	if err != nil {
		return err
	}
	for _, entry := range old {
		if entry.Name() == ".gitkeep" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(target, entry.Name())); err != nil {
			return err
		}
	}
	if err := copyTree(target, fresh, nil); err != nil {
		return err
	}
	return errors.Join(writeFileAtomically(stamp, []byte(key)), os.RemoveAll(fresh))
}
