// release builds trellisctl for all platforms, with checksums, and a manifest for Krew, the manager of kubectl's
// plugins: installed by it, trellisctl is `kubectl trellis`. Man pages lie beside the program, but for Windows. From
// the same tree come the same bytes, wherever it lies.
//
//	release <folder> <version> <base URL>
//
// The base URL is where the archives will be offered, such as https://example.com/trellis/v0.1.0.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: release <folder> <version> <base URL>")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := release(ctx, os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// platform is one that archives are made for.
type platform struct{ system, processor string }

var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
	{"windows", "arm64"},
}

// isThisOne says whether programs of the platform run here.
func (p platform) isThisOne() bool { return p == platform{runtime.GOOS, runtime.GOARCH} }

// program is the name of the program in an archive: kubectl finds its plugins by such names.
func (p platform) program() string {
	if p.system == "windows" {
		return "kubectl-trellis.exe"
	}
	return "kubectl-trellis"
}

func (p platform) archive() string { return "trellisctl-" + p.system + "-" + p.processor + ".tar.gz" }

// versionPattern is what Krew takes for a version.
var versionPattern = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// check says what is wrong with the arguments, before anything is built.
func check(version, base string) error {
	if !versionPattern.MatchString(version) {
		return fmt.Errorf("version %q: must be like v0.1.0", version)
	}
	address, err := url.Parse(base)
	if err != nil {
		return fmt.Errorf("base URL: %w", err)
	}
	if address.Scheme != "https" || address.Host == "" || address.User != nil || address.RawQuery != "" ||
		address.Fragment != "" || strings.Contains(base, " ") {
		return fmt.Errorf("base URL %q: must be https://HOST/PATH", base)
	}
	return nil
}

// release fills a folder.
func release(ctx context.Context, folder, version, base string) error {
	if err := check(version, base); err != nil {
		return err
	}
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return fmt.Errorf("not in the root of the tree: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	checksums := map[platform]string{}
	for _, p := range platforms {
		program, err := build(ctx, p, version)
		if err != nil {
			return fmt.Errorf("building for %s/%s: %w", p.system, p.processor, err)
		}
		if p.isThisOne() {
			if err := start(ctx, p, program, version); err != nil {
				return err
			}
		}
		text, err := pack(contents(p, version, program, license))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, p.archive()), text, 0o644); err != nil {
			return err
		}
		checksums[p] = checksum(text)
		fmt.Fprintf(&sums, "%s  %s\n", checksums[p], p.archive())
	}
	manifest, err := krew(version, base, checksums)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "trellis.yaml"), manifest, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// start has a program say its version: one that does not start is not offered to anybody.
func start(ctx context.Context, p platform, program []byte, version string) error {
	folder, err := os.MkdirTemp("", "trellis-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, p.program())
	if err := os.WriteFile(path, program, 0o700); err != nil {
		return err
	}
	said, err := exec.CommandContext(ctx, path, "version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("starting what was built for %s/%s: %w: %s", p.system, p.processor, err, said)
	}
	if !strings.Contains(string(said), version) {
		return fmt.Errorf("what was built for %s/%s says that it is version %q, and not %s", p.system, p.processor,
			strings.TrimSpace(string(said)), version)
	}
	return nil
}

// build compiles trellisctl for a platform. Neither the folder of the tree nor the time gets into it.
func build(ctx context.Context, p platform, version string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "trellis-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, p.program())
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
		"-s -w -X github.com/trellis-garden/trellis/pkg/version.Version="+version, "-o", path, "./cmd/trellisctl")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+p.system, "GOARCH="+p.processor)
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
