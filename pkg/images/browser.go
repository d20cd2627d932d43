package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Paths of what end-to-end tests in a browser run, in the cache folder.
const (
	// BrowserRootDir is the root file system of the browser.
	BrowserRootDir = "rootfs/browser"
	// BrowserNodeDir has the tests' Node, in bin/node, and their packages, in node_modules.
	BrowserNodeDir = "browser"
)

const (
	// browserSource has the tests that run in the browser, with the list of their packages.
	browserSource = "test/browser"
	// browserArchive holds BrowserNodeDir in BinDir.
	browserArchive = "browser-tests.tar"
	// browserRevision is raised when makeBrowserNode changes, so that it is made anew.
	browserRevision = "1"
	// packagesFolder is where npm installs.
	packagesFolder = "node_modules"
)

// browserPackages are the browser, what makes a list of the authorities that it trusts, and letters to show.
var browserPackages = []string{
	"chromium", "libnss3-tools", "fonts-dejavu-core", "fonts-wqy-microhei", "ca-certificates",
}

// BuildBrowser provides a browser, Node and packages for end-to-end tests. Nothing is installed on the host.
func BuildBrowser(ctx context.Context, options Options) error {
	b, err := newBuilder(options)
	if err != nil {
		return err
	}
	defer b.shared.close()
	browser := system{"browser", BrowserRootDir, browserPackages, b.debian.extract, finishBrowser}
	if err := b.provideSystem(ctx, browser); err != nil {
		return err
	}
	return b.step(ctx, "Packages of the tests in a browser", b.buildBrowserNode)
}

// finishBrowser gives the browser what scripts of its packages would: a user, folders to mount, and which letters to
// take for families that pages name.
func finishBrowser(dir string) error {
	for _, name := range []string{"proc", "dev", "sys", "tmp", "root", "run"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	chosen := filepath.Join(dir, "etc/fonts/conf.d")
	if err := os.MkdirAll(chosen, 0o755); err != nil {
		return err
	}
	for _, pattern := range []string{"45-*.conf", "49-*.conf", "60-*.conf"} {
		available, err := filepath.Glob(filepath.Join(dir, "usr/share/fontconfig/conf.avail", pattern))
		if err != nil {
			return err
		}
		for _, path := range available {
			target := filepath.Join("/usr/share/fontconfig/conf.avail", filepath.Base(path))
			err := os.Symlink(target, filepath.Join(chosen, filepath.Base(path)))
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	return writeFiles(dir, map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n",
	})
}

// buildBrowserNode provides Node and the packages of the tests, and has the tests find them.
func (b *builder) buildBrowserNode(ctx context.Context) error {
	toolList, err := os.ReadFile(filepath.Join(b.Root, pagesTools))
	if err != nil {
		return err
	}
	inputs := []string{"packages of the tests in a browser", browserRevision, string(toolList)}
	for _, name := range []string{"package.json", "package-lock.json"} {
		content, err := os.ReadFile(filepath.Join(b.Root, browserSource, name))
		if err != nil {
			return err
		}
		inputs = append(inputs, string(content))
	}
	key := keyOf(inputs)
	p := product{name: "browser tests", key: key, dir: b.binDir(), files: []string{browserArchive}}
	err = b.provide(ctx, p, func(ctx context.Context) error { return b.makeBrowserNode(ctx, toolList) })
	if err != nil {
		return fmt.Errorf("packages of %s: %w", browserSource, err)
	}
	return b.layBrowserNode(ctx, key)
}

// makeBrowserNode installs the packages in the cache, beside Node, and archives both.
func (b *builder) makeBrowserNode(ctx context.Context, toolList []byte) error {
	work := filepath.Join(b.Cache, "browser.new")
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	npm, err := b.fetchNPM(ctx, work, toolList)
	if err != nil {
		return err
	}
	source := filepath.Join(work, "tests")
	if err := os.MkdirAll(filepath.Join(source, "bin"), 0o755); err != nil {
		return err
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		if err := copyFile(filepath.Join(b.Root, browserSource, name), filepath.Join(source, name)); err != nil {
			return err
		}
	}
	if err := npm(ctx, source, "ci", "--include=dev", "--ignore-scripts"); err != nil {
		return err
	}
	if err := copyFile(filepath.Join(work, "node", "bin", "node"), filepath.Join(source, "bin", "node")); err != nil {
		return err
	}
	return errors.Join(archiveTree(source, b.bin(browserArchive)), os.RemoveAll(work))
}

// layBrowserNode makes BrowserNodeDir what the archive has, and a link to its packages beside the tests.
func (b *builder) layBrowserNode(ctx context.Context, key string) error {
	target, stamp := filepath.Join(b.Cache, BrowserNodeDir), filepath.Join(b.Cache, "stamps", "browser")
	if known, err := os.ReadFile(stamp); err != nil || string(known) != key || !isThere(target) {
		if err := b.extractTree(ctx, b.bin(browserArchive), target); err != nil {
			return err
		}
		if err := writeFileAtomically(stamp, []byte(key)); err != nil {
			return err
		}
	}
	tests := filepath.Join(b.Root, browserSource)
	relative, err := filepath.Rel(tests, filepath.Join(target, packagesFolder))
	if err != nil {
		return err
	}
	link := filepath.Join(tests, packagesFolder)
	if err := os.RemoveAll(link); err != nil {
		return err
	}
	return os.Symlink(relative, link)
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// fetchNPM fetches Node and npm into a folder, and gives what runs npm's commands with them.
func (b *builder) fetchNPM(ctx context.Context, work string, toolList []byte) (
	func(ctx context.Context, dir string, arguments ...string) error, error) {
	tools, err := parseTools(toolList)
	if err != nil {
		return nil, err
	}
	registry, err := npmRegistry(ctx, os.Getenv)
	if err != nil {
		return nil, err
	}
	node, npm := filepath.Join(work, "node"), filepath.Join(work, "npm")
	if err := errors.Join(tools.Node.fetch(ctx, registry, node), tools.NPM.fetch(ctx, registry, npm)); err != nil {
		return nil, err
	}
	program := filepath.Join(node, "bin", "node")
	environment := []string{
		"PATH=" + filepath.Dir(program) + string(os.PathListSeparator) + os.Getenv("PATH"), "CI=1",
		"npm_config_update_notifier=false", "npm_config_cache=" + filepath.Join(b.Cache, "npm"),
	}
	return func(ctx context.Context, dir string, arguments ...string) error {
		script := filepath.Join(npm, "bin", "npm-cli.js")
		return run(ctx, b.log, dir, environment, program, slices.Concat([]string{script}, arguments)...)
	}, nil
}
