package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// initPath is the init system of the node's root file system.
const initPath = "/lib/systemd/systemd"

// Init is the node's first process: it builds the node's view of the world and becomes systemd. It only returns when
// that fails. The report goes to the supervisor through the first inherited file.
func Init(specPath string) error {
	runtime.LockOSThread()
	report := os.NewFile(firstInherited, "report")
	unix.CloseOnExec(firstInherited)
	if err := build(specPath); err != nil {
		fmt.Fprintln(report, strings.ReplaceAll(err.Error(), "\n", "; "))
		return err
	}
	// PDEATHSIG was set for a thread that ends with exec: set it again here.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("binding the node's life to its supervisor's: %w", err)
	}
	if _, err := fmt.Fprintln(report, initReady); err != nil {
		return fmt.Errorf("the supervisor is gone: %w", err)
	}
	environment := []string{
		"container=trellis", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=dumb",
	}
	arguments := []string{initPath, "--system", "--show-status=false", "--log-target=journal-or-kmsg"}
	err := fmt.Errorf("becoming %s: %w", initPath, unix.Exec(initPath, arguments, environment))
	fmt.Fprintln(report, err)
	return err
}

func build(specPath string) error {
	spec, err := LoadSpec(specPath)
	if err != nil {
		return err
	}
	steps := []struct {
		what string
		do   func(Spec) error
	}{
		{"cgroups", enterCgroups},
		{"host name", func(s Spec) error { return unix.Sethostname([]byte(s.Hostname)) }},
		{"root file system", mountRoot},
		{"kernel file systems", mountKernelFileSystems},
		{"devices", makeDevices},
		{"cgroup mounts", mountCgroups},
		{"volumes", bindMounts},
		{"files", writeFiles},
		{"network", buildNetwork},
		{"kernel settings", maskKernelSettings},
		{"change of root", changeRoot},
		{"init system", func(Spec) error { return unix.Access(initPath, unix.X_OK) }},
	}
	for _, step := range steps {
		if err := step.do(spec); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// enterCgroups moves into the node's cgroups and makes them the root of what the node sees.
func enterCgroups(spec Spec) error {
	if err := joinCgroup(spec.Name, spec.cgroup()); err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("cgroup namespace: %w", err)
	}
	return nil
}

// mountRoot lays the node's changes over the read-only root file system. Nothing mounted from here on reaches the host.
func mountRoot(spec Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	for _, dir := range []string{spec.upper(), spec.work(), spec.root()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", spec.RootFS, spec.upper(), spec.work())
	if err := unix.Mount("overlay", spec.root(), "overlay", 0, options); err != nil {
		return fmt.Errorf("overlay over %s: %w", spec.RootFS, err)
	}
	return nil
}

func mountKernelFileSystems(spec Spec) error {
	const safe = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	mounts := []struct {
		kind, target, options string
		flags                 uintptr
	}{
		{"proc", "/proc", "", safe},
		{"sysfs", "/sys", "", safe},
		{"tmpfs", "/dev", "mode=755,size=64m", unix.MS_NOSUID},
		{"devpts", "/dev/pts", "newinstance,ptmxmode=0666,mode=0620,gid=5", unix.MS_NOSUID | unix.MS_NOEXEC},
		{"tmpfs", "/dev/shm", "mode=1777", unix.MS_NOSUID | unix.MS_NODEV},
		{"mqueue", "/dev/mqueue", "", safe},
		{"tmpfs", "/run", "mode=755", unix.MS_NOSUID | unix.MS_NODEV},
		{"tmpfs", "/tmp", "mode=1777", unix.MS_NOSUID | unix.MS_NODEV},
	}
	for _, m := range mounts {
		target := filepath.Join(spec.root(), m.target)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, target, m.kind, m.flags, m.options); err != nil {
			return fmt.Errorf("%s on %s: %w", m.kind, m.target, err)
		}
	}
	return nil
}

// makeDevices makes the devices that a node needs, and no other: the host's disks stay out of reach of a mere mistake.
func makeDevices(spec Spec) error {
	devices := []struct {
		path         string
		major, minor uint32
		mode         uint32
		optional     bool
	}{
		{"null", 1, 3, 0o666, false}, {"zero", 1, 5, 0o666, false}, {"full", 1, 7, 0o666, false},
		{"random", 1, 8, 0o666, false}, {"urandom", 1, 9, 0o666, false}, {"tty", 5, 0, 0o666, false},
		{"kmsg", 1, 11, 0o640, true}, {"net/tun", 10, 200, 0o666, true}, {"fuse", 10, 229, 0o666, true},
	}
	for _, device := range devices {
		if device.optional && !exists(filepath.Join("/dev", device.path)) {
			continue
		}
		path := filepath.Join(spec.root(), "dev", device.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := unix.Mknod(path, unix.S_IFCHR|device.mode, int(unix.Mkdev(device.major, device.minor))); err != nil {
			return fmt.Errorf("/dev/%s: %w", device.path, err)
		}
		if err := os.Chmod(path, os.FileMode(device.mode)); err != nil {
			return err
		}
	}
	links := map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1",
		"stderr": "/proc/self/fd/2", "console": "null",
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(spec.root(), "dev", name)); err != nil {
			return err
		}
	}
	return nil
}

// mountCgroups shows the node its own cgroups where it expects the machine's.
func mountCgroups(spec Spec) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	root := filepath.Join(spec.root(), cgroupRoot)
	if len(all) > 1 || all[0].path != cgroupRoot {
		if err := unix.Mount("tmpfs", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
			"mode=755"); err != nil {
			return fmt.Errorf("%s: %w", cgroupRoot, err)
		}
		if err := copyLinks(cgroupRoot, root); err != nil {
			return err
		}
	}
	for _, h := range all {
		if err := bind(Mount{Source: filepath.Join(landscapeCgroup(h, spec.Name), spec.cgroup()), Target: h.path},
			spec.root()); err != nil {
			return err
		}
	}
	return nil
}

// copyLinks repeats the symbolic links of a folder, such as cpu → cpu,cpuacct.
func copyLinks(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink == 0 {
			continue
		}
		target, err := os.Readlink(filepath.Join(from, entry.Name()))
		if err != nil {
			return err
		}
		if err := os.Symlink(target, filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func bindMounts(spec Spec) error {
	mounts := spec.Mounts
	if exists("/lib/modules") {
		mounts = append([]Mount{{Source: "/lib/modules", Target: "/lib/modules", ReadOnly: true}}, mounts...)
	}
	for _, mount := range mounts {
		if err := bind(mount, spec.root()); err != nil {
			return err
		}
	}
	return nil
}

// bind mounts a host file or folder at a path below root, and makes the mount point.
func bind(mount Mount, root string) error {
	info, err := os.Stat(mount.Source)
	if err != nil {
		return err
	}
	target := filepath.Join(root, mount.Target)
	if err := makeMountPoint(target, info.IsDir()); err != nil {
		return err
	}
	if err := unix.Mount(mount.Source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("binding %s to %s: %w", mount.Source, mount.Target, err)
	}
	if !mount.ReadOnly {
		return nil
	}
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("making %s read-only: %w", mount.Target, err)
	}
	return nil
}

func makeMountPoint(target string, dir bool) error {
	if dir {
		return os.MkdirAll(target, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(target, os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

func writeFiles(spec Spec) error {
	for _, file := range spec.Files {
		content := []byte(file.Content)
		if file.Source != "" {
			var err error
			if content, err = os.ReadFile(file.Source); err != nil {
				return err
			}
		}
		mode := file.Mode
		if mode == 0 {
			mode = 0o644
		}
		if err := replace(filepath.Join(spec.root(), file.Path), func(path string) error {
			return os.WriteFile(path, content, mode)
		}); err != nil {
			return err
		}
	}
	for path, target := range spec.Links {
		if err := replace(filepath.Join(spec.root(), path),
			func(path string) error { return os.Symlink(target, path) }); err != nil {
			return err
		}
	}
	return nil
}

// replace removes what is at path, which may be a link that leads elsewhere, and makes it anew.
func replace(path string, create func(string) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return create(path)
}

// Settings that belong to the whole machine. kubelet wants these values and would set them; in the node it is shown
// that they are set.
var kubeletSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// maskKernelSettings keeps the node from changing settings of the machine: /proc/sys can be read, and only the part of
// the node's own network written.
func maskKernelSettings(spec Spec) error {
	settings := filepath.Join(spec.root(), "proc/sys")
	network := filepath.Join(settings, "net")
	if err := unix.Mount(network, network, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("/proc/sys/net: %w", err)
	}
	masks := filepath.Join(spec.root(), "run/trellis/sys")
	for name, value := range kubeletSettings {
		mask := filepath.Join(masks, strings.ReplaceAll(name, "/", "."))
		if err := os.MkdirAll(masks, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(mask, []byte(value+"\n"), 0o444); err != nil {
			return err
		}
		if err := bind(Mount{Source: mask, Target: filepath.Join("/proc/sys", name), ReadOnly: true},
			spec.root()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := readOnly(settings); err != nil {
		return fmt.Errorf("/proc/sys: %w", err)
	}
	if trigger := filepath.Join(spec.root(), "proc/sysrq-trigger"); exists(trigger) {
		return readOnly(trigger)
	}
	return nil
}

// readOnly makes a file or folder of a mounted file system read-only where it is, and leaves what is mounted below it.
func readOnly(path string) error {
	if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return unix.Mount("", path, "",
		unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// changeRoot makes the node's file system the root of everything. Its mounts are shared, as kubelet needs for mount
// propagation into pods.
func changeRoot(spec Spec) error {
	if err := unix.Chdir(spec.root()); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the host's file system: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil || !errors.Is(err, syscall.ENOENT)
}
