package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// landscape is the one that is measured.
type landscape struct{ name, state string }

// benchLandscape is started and ended by the measurements.
var benchLandscape = landscape{name: "bench", state: ".landscape-bench"}

// run runs the landscape's own command.
func (l landscape) run(ctx context.Context, command string, arguments ...string) error {
	start := exec.CommandContext(ctx, "bin/landscape", append([]string{command, "--name", l.name}, arguments...)...)
	start.Stdout, start.Stderr = os.Stderr, os.Stderr
	return start.Run()
}

// measureUp starts the landscape several times with everything built, and leaves the last one running.
func measureUp(ctx context.Context, l landscape) ([]measurement, error) {
	var took []float64
	for round := range rounds {
		if err := l.run(ctx, "down"); err != nil {
			return nil, err
		}
		start := time.Now()
		if err := l.run(ctx, "up"); err != nil {
			return nil, err
		}
		took = append(took, time.Since(start).Minutes())
		fmt.Printf("  make up, round %d: %.1f min\n", round+1, took[round])
	}
	return []measurement{
		{
			Name: "`make up` with everything built", Value: median(took), Unit: "min",
			How: fmt.Sprintf("median of %d starts of a new landscape", rounds),
		},
	}, nil
}

// measureFresh runs `make up` in a new clone with empty caches and without what a fresh machine lacks.
func measureFresh(ctx context.Context) ([]measurement, error) {
	dir, err := os.MkdirTemp("", "trellis-fresh-")
	if err != nil {
		return nil, err
	}
	clone := filepath.Join(dir, "clone")
	if out, err := exec.CommandContext(ctx, "git", "clone", "--quiet", ".", clone).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("git clone: %w: %s", err, out)
	}
	command := func(target string) *exec.Cmd {
		c := exec.Command("make", target, "NAME=fresh")
		c.Dir, c.Stdout, c.Stderr = clone, os.Stderr, os.Stderr
		c.Env = append(os.Environ(), "GOCACHE="+filepath.Join(dir, "gocache"),
			"GOMODCACHE="+filepath.Join(dir, "gomodcache"), "GOFLAGS=-modcacherw",
			"XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "PATH="+withoutTerraform(os.Getenv("PATH")))
		return c
	}
	start := time.Now()
	err = command("up").Run()
	took := time.Since(start)
	if downErr := command("down").Run(); err == nil {
		err = downErr
	}
	if err != nil {
		return nil, fmt.Errorf("make up in %s: %w", clone, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	return []measurement{
		{
			Name: "`make up` on a fresh machine, builds included", Value: took.Minutes(), Unit: "min",
			How: "one run in a new clone with empty caches of Go modules and builds, without terraform, downloads " +
				"included",
		},
	}, nil
}

// withoutTerraform leaves out the folders of a PATH that hold terraform or tofu.
func withoutTerraform(path string) string {
	var kept []string
	for _, dir := range filepath.SplitList(path) {
		_, terraform := os.Stat(filepath.Join(dir, "terraform"))
		_, tofu := os.Stat(filepath.Join(dir, "tofu"))
		if terraform != nil && tofu != nil {
			kept = append(kept, dir)
		}
	}
	return strings.Join(kept, string(os.PathListSeparator))
}

func (l landscape) kubectl(ctx context.Context, kubeconfig, input string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "bin/kubectl", append([]string{"--kubeconfig", kubeconfig}, arguments...)...)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// until repeats a command until it succeeds with an output that holds want.
func until(ctx context.Context, want string, do func(context.Context) (string, error)) error {
	return eventually(ctx, 10*time.Minute, 200*time.Millisecond, func(ctx context.Context) error {
		out, err := do(ctx)
		if err == nil && !strings.Contains(out, want) {
			err = fmt.Errorf("got %q, want %q", out, want)
		}
		return err
	})
}

// eventually repeats try, with pauses, until it succeeds. The error says what it last failed of.
func eventually(ctx context.Context, timeout, pause time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	var last error
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err // An attempt that was cut off says nothing.
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", ctx.Err(), last)
		case <-ticker.C:
		}
	}
}
