package landscape

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/trellis-garden/trellis/pkg/images"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

// buildPhase builds what is missing or out of date, and puts the programs for people into bin.
func buildPhase(ctx context.Context, r *run) error {
	if !r.NoBuild {
		if err := images.Build(ctx, r.buildOptions()); err != nil {
			return err
		}
	}
	return r.linkPrograms()
}

func (r *run) buildOptions() images.Options {
	return images.Options{
		Root: r.Root, Cache: r.CacheDir(), Shared: r.sharedFolder(), Extensions: r.Extensions,
		KubernetesVersions: r.KubernetesVersions, Env: environment(), Log: r.Progress,
		InUse: func() ([]imagevector.Vector, error) { return vectorsOfAll(r.Root) },
		Progress: func(step string, done bool, took time.Duration, err error) {
			if !done {
				r.Step("%s", step)
			} else {
				fmt.Fprintf(r.Progress, "%s: %s (%v)\n", step, seconds(took), err)
			}
		},
	}
}

// environment is what all programs of a landscape find on this machine.
func environment() []string { return environmentOn(runtime.NumCPU()) }

// environmentOn is the environment on a machine with so many processors. Where there are two, which
// dozens of programs share, each Go program takes one at a time: one that wakes a second thread for each event changes
// between threads twice as often, which takes up to a fifth of its time.
func environmentOn(processors int) []string {
	if processors > 2 {
		return nil
	}
	return []string{"GOMAXPROCS=1"}
}

// sharedFolder is where clones of this user share what they build; empty if the user has no folder for such.
func (r *run) sharedFolder() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		r.Step("nothing is taken from other clones: %v", err)
		return ""
	}
	return filepath.Join(dir, "trellis")
}

// linkPrograms makes bin/trellisctl and bin/kubectl: links, because one program is also the plugin of the other.
func (l *Landscape) linkPrograms() error {
	targets := map[string]string{
		"kubernetes": l.builtProgram("kubernetes-v" + images.DefaultKubernetesVersion),
		"kubectl":    l.builtProgram(images.Kubectl),
		"trellisctl": l.builtProgram("trellisctl"), "kubectl-trellis": l.builtProgram("trellisctl"),
	}
	if err := os.MkdirAll(l.BinDir(), 0o755); err != nil {
		return err
	}
	for name, target := range targets {
		if err := relink(target, filepath.Join(l.BinDir(), name)); err != nil {
			return fmt.Errorf("bin/%s: %w", name, err)
		}
	}
	return nil
}

// relink makes a relative symbolic link, which survives moving the repository.
func relink(target, link string) error {
	relative, err := filepath.Rel(filepath.Dir(link), target)
	if err != nil {
		return err
	}
	if current, err := os.Readlink(link); err == nil && current == relative {
		return nil
	}
	if err := os.RemoveAll(link); err != nil {
		return err
	}
	return os.Symlink(relative, link)
}

// Build builds programs and images without starting anything.
func (l *Landscape) Build(ctx context.Context, options UpOptions, progress *Progress) error {
	if err := l.checkVersions(options.KubernetesVersions); err != nil {
		return err
	}
	closeLog, err := l.openLog(progress)
	if err != nil {
		return err
	}
	defer closeLog()
	r := &run{Landscape: l, UpOptions: options, Progress: progress}
	for _, p := range l.phases() {
		if p.name == "build" {
			return r.runPhase(ctx, p)
		}
	}
	return nil
}

// BuildBrowser provides the browser of the end-to-end tests, and what runs them.
func (l *Landscape) BuildBrowser(ctx context.Context, progress *Progress) error {
	return l.buildOnly(ctx, progress, "Browser of the end-to-end tests", images.BuildBrowser)
}

// BuildPages checks and builds the pages of the dashboard.
func (l *Landscape) BuildPages(ctx context.Context, progress *Progress) error {
	return l.buildOnly(ctx, progress, "Checks of the pages", images.BuildPages)
}

// buildOnly builds a part of what there is to build.
func (l *Landscape) buildOnly(ctx context.Context, progress *Progress, title string,
	build func(context.Context, images.Options) error) error {
	closeLog, err := l.openLog(progress)
	if err != nil {
		return err
	}
	defer closeLog()
	r := &run{Landscape: l, Progress: progress}
	r.begin(title)
	err = build(ctx, r.buildOptions())
	r.end(err)
	return err
}
