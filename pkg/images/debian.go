package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// debian makes root file systems from Debian packages with the host's apt-get and dpkg-deb, using the host's package
// sources but lists, caches and status files of its own: nothing is installed on the host.
type debian struct {
	dir string
	log logFunc
}

// unneeded are folders of Debian packages that no container reads.
var unneeded = []string{
	"usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian", "usr/share/bug",
	"var/cache/apt", "var/lib/apt/lists",
}

func (d debian) apt(ctx context.Context, state string, arguments ...string) error {
	for _, dir := range []string{"lists/partial", "archives/partial", state} {
		if err := os.MkdirAll(filepath.Join(d.dir, dir), 0o755); err != nil {
			return err
		}
	}
	status := filepath.Join(d.dir, state, "status")
	if err := os.WriteFile(status, nil, 0o644); err != nil {
		return err
	}
	options := map[string]string{
		"Dir::State::status":          status,
		"Dir::State::extended_states": filepath.Join(d.dir, state, "extended_states"),
		"Dir::State::Lists":           filepath.Join(d.dir, "lists"),
		"Dir::Cache::Archives":        filepath.Join(d.dir, "archives"),
		"Dir::Cache::pkgcache":        "",
		"Dir::Cache::srcpkgcache":     "",
		"APT::Install-Recommends":     "false",
		"APT::Sandbox::User":          "root",
		"Debug::NoLocking":            "1",
		"Acquire::Languages":          "none",
	}
	full := []string{}
	for key, value := range options {
		full = append(full, "-o", key+"="+value)
	}
	return run(ctx, d.log, "", nil, "apt-get", append(full, arguments...)...)
}

// download fetches the named packages and all that they depend on, and returns the archives.
func (d debian) download(ctx context.Context, name string, packages []string) ([]string, error) {
	if entries, err := os.ReadDir(filepath.Join(d.dir, "lists")); err != nil || len(entries) < 3 {
		if err := d.apt(ctx, "update", "update"); err != nil {
			return nil, fmt.Errorf("reading Debian's package lists: %w", err)
		}
	}
	plan := filepath.Join(d.dir, "plan-"+name)
	if err := d.apt(ctx, plan[len(d.dir)+1:],
		append([]string{"--download-only", "-y", "install"}, packages...)...); err != nil {
		return nil, fmt.Errorf("downloading Debian packages %s: %w", strings.Join(packages, " "), err)
	}
	return d.archivesOf(ctx, plan[len(d.dir)+1:], packages)
}

// archivesOf lists the archives that an installation of the packages on an empty system unpacks.
func (d debian) archivesOf(ctx context.Context, state string, packages []string) ([]string, error) {
	output := &strings.Builder{}
	quiet := debian{dir: d.dir, log: func(line string) { fmt.Fprintln(output, line) }}
	if err := quiet.apt(ctx, state, append([]string{"--simulate", "-y", "install"}, packages...)...); err != nil {
		return nil, err
	}
	var archives []string
	for _, line := range strings.Split(output.String(), "\n") {
		name, version, ok := parseSimulatedInstall(line)
		if !ok {
			continue
		}
		pattern := fmt.Sprintf("%s_%s_*.deb", name, strings.ReplaceAll(version, ":", "%3a"))
		matches, err := filepath.Glob(filepath.Join(d.dir, "archives", pattern))
		if err != nil || len(matches) == 0 {
			return nil, fmt.Errorf("apt-get did not download %s %s", name, version)
		}
		archives = append(archives, matches[0])
	}
	return archives, nil
}

// parseSimulatedInstall reads a line such as "Inst dash (0.5.12-2 Debian:12.11/stable [amd64])".
func parseSimulatedInstall(line string) (name, version string, ok bool) {
	rest, ok := strings.CutPrefix(line, "Inst ")
	if !ok {
		return "", "", false
	}
	name, rest, ok = strings.Cut(rest, " (")
	if !ok {
		return "", "", false
	}
	version, _, ok = strings.Cut(rest, " ")
	name, _, _ = strings.Cut(name, " ")
	return name, version, ok
}

// extract unpacks the packages and their dependencies into dir without running any of their scripts.
func (d debian) extract(ctx context.Context, dir, name string, packages []string) error {
	archives, err := d.download(ctx, name, packages)
	if err != nil {
		return err
	}
	if err := freshRoot(dir); err != nil {
		return err
	}
	for _, archive := range archives {
		if err := unpack(ctx, d.log, archive, dir); err != nil {
			return err
		}
	}
	return prune(dir)
}

// bootstrap makes a system in dir with the packages installed and configured, as debootstrap would: the archives are
// unpacked, then dpkg of the new system installs them in order, in namespaces of its own so that a killed run leaves no
// mount and no process behind.
func (d debian) bootstrap(ctx context.Context, dir, name string, packages []string) error {
	archives, err := d.download(ctx, name, append([]string{"?essential", "?priority(required)"}, packages...))
	if err != nil {
		return err
	}
	if err := freshRoot(dir); err != nil {
		return err
	}
	for _, archive := range archives {
		if err := unpack(ctx, d.log, archive, dir); err != nil {
			return err
		}
	}
	if err := d.stage(dir, archives); err != nil {
		return err
	}
	if err := d.configure(ctx, dir); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(filepath.Join(dir, "debs")), os.Remove(filepath.Join(dir, "usr/sbin/policy-rc.d")),
		prune(dir))
}

// stage puts the archives and what dpkg needs into the new system.
func (d debian) stage(dir string, archives []string) error {
	for _, path := range []string{
		"debs", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "proc", "sys", "dev", "run",
		"tmp", "root",
	} {
		if err := os.MkdirAll(filepath.Join(dir, path), 0o755); err != nil {
			return err
		}
	}
	for _, archive := range archives {
		if err := linkOrCopy(archive, filepath.Join(dir, "debs", filepath.Base(archive))); err != nil {
			return err
		}
	}
	files := map[string]string{
		"var/lib/dpkg/status":    "",
		"var/lib/dpkg/available": "",
		"etc/passwd":             "root:x:0:0:root:/root:/bin/bash\n",
		"etc/group":              "root:x:0:\n",
		"usr/sbin/policy-rc.d":   "#!/bin/sh\nexit 101\n",
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if name != "usr/sbin/policy-rc.d" {
			if _, err := os.Stat(path); err == nil {
				continue
			}
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (d debian) configure(ctx context.Context, dir string) error {
	script := `set -e
mount -t proc proc "$0/proc"
mount -t tmpfs tmpfs "$0/dev"
for node in null zero full random urandom tty; do touch "$0/dev/$node"; mount --bind "/dev/$node" "$0/dev/$node"; done
ln -s /proc/self/fd "$0/dev/fd"
chroot "$0" dpkg --force-depends --force-confold --install --recursive /debs || true
chroot "$0" dpkg --force-confold --configure -a
`
	command := exec.CommandContext(ctx, "/bin/sh", "-c", script, dir)
	command.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive",
		"DEBCONF_NONINTERACTIVE_SEEN=true", "LC_ALL=C", "HOME=/root",
	}
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS |
			syscall.CLONE_NEWIPC,
		Unshareflags: syscall.CLONE_NEWNS,
		Pdeathsig:    syscall.SIGKILL,
	}
	if err := runCommand(command, d.log); err != nil {
		return fmt.Errorf("configuring the Debian packages in %s: %w", dir, err)
	}
	return nil
}

// freshRoot makes dir an empty root file system with Debian's merged /usr.
func freshRoot(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.MkdirAll(filepath.Join(dir, "usr", name), 0o755); err != nil {
			return err
		}
		if err := os.Symlink("usr/"+name, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func unpack(ctx context.Context, log logFunc, archive, dir string) error {
	return run(ctx, log, "", nil, "/bin/sh", "-c",
		`dpkg-deb --fsys-tarfile "$0" | tar --keep-directory-symlink -xpf - -C "$1"`, archive, dir)
}

func prune(dir string) error {
	for _, name := range unneeded {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func linkOrCopy(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}
