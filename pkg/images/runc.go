package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// runcDir is runc's nested module, below the root of the repository.
const runcDir = "images/runc"

const (
	runcPackage = "github.com/opencontainers/runc"
	// runcVersion is that of its go.mod: the one that the release of containerd is tested with.
	runcVersion = "1.5.2"
)

// runcPackages are what runc is compiled with: it starts containers in C, and filters system calls with libseccomp.
var runcPackages = []string{"gcc", "libc6-dev", "libseccomp-dev", "pkgconf"}

// runcScript compiles runc, the module $4, in the root file system $0, which has a C compiler, with the Go toolchain
// $1, its modules $2 and its cache $3 of this machine. The program goes to $5; it is static, for any machine image.
const runcScript = `set -e
bind() { mkdir -p "$0$2"; mount --bind "$1" "$0$2"; }
bind "$1" /usr/local/go
bind "$2" /modules
bind "$3" /cache
bind "$4" /runc
bind "$5" /output
mount -t proc proc "$0/proc"
for node in null zero urandom; do touch "$0/dev/$node"; mount --bind "/dev/$node" "$0/dev/$node"; done
chroot "$0" /usr/local/go/bin/go -C /runc build -trimpath -buildvcs=false \
  -tags "seccomp urfave_cli_no_docs netgo osusergo" \
  -ldflags "-s -w -linkmode external -extldflags -static" -o /output/runc ` + runcPackage + "\n"

// buildRunc compiles runc, the one program that needs a C compiler, in a root file system of its own: nothing is
// installed on this machine. That takes a while, so it is done again only when something has changed.
func (b *builder) buildRunc(ctx context.Context) error {
	module := filepath.Join(b.Root, runcDir)
	key, err := runcKey(module)
	if err != nil {
		return err
	}
	stamp := filepath.Join(b.Cache, "stamps", "runc")
	known, err := os.ReadFile(stamp)
	if _, missing := os.Stat(b.bin("runc")); err == nil && missing == nil && string(known) == key {
		return nil
	}
	return b.step(ctx, "runc", func(ctx context.Context) error {
		if err := b.provideRunc(ctx, module, key); err != nil {
			return fmt.Errorf("building runc %s in %s: %w", runcVersion, runcDir, err)
		}
		return writeFileAtomically(stamp, []byte(key))
	})
}

// provideRunc takes runc from the shared folder, or compiles it. It is linked with libraries of Debian.
func (b *builder) provideRunc(ctx context.Context, module, key string) error {
	inputs, err := goInputs(ctx, module, []string{"CGO_ENABLED=1", "GOWORK=off"})
	if err != nil {
		return err
	}
	if inputs != nil {
		system, err := debianInputs("/etc", time.Now())
		if err != nil {
			return err
		}
		inputs = slices.Concat([]string{"runc", key}, inputs, system)
	}
	p := product{name: "runc", key: keyOf(inputs), dir: b.binDir(), files: []string{"runc"}}
	return b.provide(ctx, p, func(ctx context.Context) error { return b.compileRunc(ctx, module) })
}

// runcKey changes with what runc is compiled from.
func runcKey(module string) (string, error) {
	inputs := append([]string{runtime.Version(), runcScript}, runcPackages...)
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", err
		}
		inputs = append(inputs, string(data))
	}
	return checksum(inputs...), nil
}

func (b *builder) compileRunc(ctx context.Context, module string) error {
	if err := run(ctx, b.log, module, nil, "go", "mod", "download"); err != nil {
		return err
	}
	folders, err := goFolders(ctx, module)
	if err != nil {
		return err
	}
	root := filepath.Join(b.Cache, "rootfs", "compiler")
	if err := b.debian.extract(ctx, root, "compiler", runcPackages); err != nil {
		return err
	}
	for _, name := range []string{"proc", "dev", "tmp"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			return err
		}
	}
	arguments := slices.Concat([]string{"-c", runcScript, root}, folders, []string{module, b.binDir()})
	command := exec.CommandContext(ctx, "/bin/sh", arguments...)
	command.Env = append(os.Environ(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "TMPDIR=/tmp",
		"CGO_ENABLED=1", "GOWORK=off", "GOMODCACHE=/modules", "GOCACHE=/cache", "GOPROXY=off", "GOTOOLCHAIN=local")
	// Mounts and processes end with the script, also when it is killed.
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET,
		Unshareflags: syscall.CLONE_NEWNS,
		Pdeathsig:    syscall.SIGKILL,
	}
	return errors.Join(runCommand(command, b.log), os.RemoveAll(root))
}

// goFolders are GOROOT, GOMODCACHE and GOCACHE, as the go command has them for a module.
func goFolders(ctx context.Context, module string) ([]string, error) {
	command := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOMODCACHE", "GOCACHE")
	command.Dir = module
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	return strings.Split(strings.TrimSpace(string(output)), "\n"), nil
}
