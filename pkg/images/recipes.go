package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

var (
	machinePackages = []string{
		"systemd", "systemd-sysv", "dbus", "iptables", "ipset", "iproute2", "conntrack", "kmod", "ca-certificates",
		"procps",
		"util-linux-extra",
		"openssh-server", "sudo",
	}
	networkPackages = []string{"iptables", "ipset", "conntrack", "busybox-static"}
	nginxPackages   = []string{"nginx-light", "busybox-static", "ca-certificates"}
)

// system is a root file system from Debian packages.
type system struct {
	name, dir string
	packages  []string
	make      func(ctx context.Context, dir, name string, packages []string) error
	finish    func(dir string) error
}

// buildSystems provides the root file systems.
func (b *builder) buildSystems(ctx context.Context) error {
	for _, s := range []system{
		{"machine", MachineRootDir, machinePackages, b.debian.bootstrap, finishMachine},
		{"network", "rootfs/network", networkPackages, b.debian.extract, finishNetwork},
		{"nginx", "rootfs/nginx", nginxPackages, b.debian.extract, finishNginx},
	} {
		if err := b.provideSystem(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// provideSystem makes a root file system if it is missing, or other packages are wanted.
func (b *builder) provideSystem(ctx context.Context, s system) error {
	stamp := filepath.Join(b.Cache, "stamps", "rootfs-"+s.name)
	key := checksum(append([]string{recipeRevision}, s.packages...)...)
	if data, err := os.ReadFile(stamp); err == nil && string(data) == key {
		return nil
	}
	err := b.step(ctx, "Debian: "+s.name, func(ctx context.Context) error { return b.buildSystem(ctx, s) })
	if err != nil {
		return err
	}
	return writeFileAtomically(stamp, []byte(key))
}

// buildSystem takes a root file system from the shared folder, or makes and keeps it, as an archive.
func (b *builder) buildSystem(ctx context.Context, s system) error {
	inputs, err := debianInputs("/etc", time.Now())
	if err != nil {
		return err
	}
	key := keyOf(slices.Concat([]string{"root file system", s.name, recipeRevision}, s.packages, inputs))
	dir := filepath.Join(b.Cache, s.dir)
	archive := filepath.Join(filepath.Dir(dir), s.name+".tar")
	if b.takeShared("Debian: "+s.name, key, filepath.Dir(archive)) {
		return errors.Join(b.extractTree(ctx, archive, dir), removeIfThere(archive))
	}
	if err := s.make(ctx, dir, s.name, s.packages); err != nil {
		return err
	}
	if err := s.finish(dir); err != nil || b.shared == nil {
		return err
	}
	if err := archiveTree(dir, archive); err != nil {
		return err
	}
	b.keepShared("Debian: "+s.name, key, archive)
	return removeIfThere(archive)
}

// archiveTree writes what is below dir to an archive, as it would be in a layer.
func archiveTree(dir, path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(file)
	return errors.Join(writeTree(archive, dir), archive.Close(), file.Close())
}

// extractTree makes dir what an archive has.
func (b *builder) extractTree(ctx context.Context, archive, dir string) error {
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
		return err
	}
	return run(ctx, b.log, "", nil, "tar", "--numeric-owner", "-xpf", archive, "-C", dir)
}

// recipeRevision is raised when the functions below change, so that root file systems are made anew.
const recipeRevision = "2"

// finishMachine sets what every machine has: no host name, no keys, no services that a machine in a pod cannot run, and
// none that let anybody in before node-agent knows who may.
func finishMachine(dir string) error {
	if err := closeSSH(dir); err != nil {
		return err
	}
	masked := []string{
		"systemd-udevd.service", "systemd-udev-trigger.service", "systemd-udevd-control.socket",
		"systemd-udevd-kernel.socket",
		"getty.target", "console-getty.service", "systemd-logind.service", "systemd-networkd.service",
		"systemd-resolved.service",
		"systemd-timesyncd.service", "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer",
		"e2scrub_all.timer",
		"fstrim.timer", "systemd-modules-load.service", "sys-kernel-debug.mount", "sys-kernel-tracing.mount",
		"dev-hugepages.mount",
		"dev-mqueue.mount", "sys-fs-fuse-connections.mount", "systemd-remount-fs.service", "systemd-firstboot.service",
		"systemd-binfmt.service",
		"proc-sys-fs-binfmt_misc.automount",
	}
	for _, unit := range masked {
		path := filepath.Join(dir, "etc/systemd/system", unit)
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		if err := os.Symlink("/dev/null", path); err != nil {
			return err
		}
	}
	files := map[string]string{
		"etc/hostname":   "",
		"etc/machine-id": "uninitialized\n",
		"etc/fstab":      "",
		"etc/systemd/journald.conf.d/10-volatile.conf": "[Journal]\nStorage=volatile\nRuntimeMaxUse=32M\n" +
			"RateLimitIntervalSec=0\n",
		"etc/systemd/system.conf.d/10-machine.conf": "[Manager]\nDefaultTimeoutStopSec=10s\n" +
			"DefaultTasksMax=infinity\nDefaultLimitNOFILE=1048576\n",
	}
	return writeFiles(dir, files)
}

// closeSSH takes the keys away that the package made, which all machines would share, and has the daemon not started.
func closeSSH(dir string) error {
	for _, pattern := range []string{
		"etc/ssh/ssh_host_*", "etc/systemd/system/*.wants/ssh.service", "etc/systemd/system/*.wants/ssh.socket",
		"etc/systemd/system/sshd.service",
	} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, path := range found {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

func finishNetwork(dir string) error {
	for name, target := range map[string]string{
		"iptables": "xtables-nft-multi", "iptables-save": "xtables-nft-multi", "iptables-restore": "xtables-nft-multi",
		"ip6tables": "xtables-nft-multi", "ip6tables-save": "xtables-nft-multi",
		"ip6tables-restore": "xtables-nft-multi",
	} {
		path := filepath.Join(dir, "usr/sbin", name)
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		if err := os.Symlink(target, path); err != nil {
			return err
		}
	}
	return finishSmall(dir)
}

func finishNginx(dir string) error {
	files := map[string]string{
		"etc/nginx/conf.d/default.conf": "server {\n    listen 80;\n    server_name localhost;\n    location / {\n  " +
			"      root /usr/share/nginx/html;\n        index index.html;\n    }\n}\n",
		"etc/nginx/nginx.conf": "user www-data;\nworker_processes 1;\nerror_log /dev/stderr notice;\npid " +
			"/run/nginx.pid;\nevents { worker_connections 512; }\n" +
			"http {\n    include /etc/nginx/mime.types;\n    default_type application/octet-stream;\n    access_log " +
			"/dev/stdout;\n    sendfile on;\n    keepalive_timeout 65;\n    include /etc/nginx/conf.d/*.conf;\n}\n",
	}
	if err := writeFiles(dir, files); err != nil {
		return err
	}
	for _, path := range []string{"var/lib/nginx/body", "var/log/nginx", "run"} {
		if err := os.MkdirAll(filepath.Join(dir, path), 0o755); err != nil {
			return err
		}
	}
	return finishSmall(dir)
}

// finishSmall makes a root file system of unpacked packages usable: a shell, users, /tmp.
func finishSmall(dir string) error {
	for _, applet := range []string{
		"sh", "ls", "cat", "ps", "wget", "nslookup", "ping", "id", "env", "sleep", "grep", "sed", "cp", "mv", "rm",
		"mkdir", "head", "tail", "echo", "hostname", "ip", "nc", "vi", "find", "date", "touch", "chmod", "true",
		"false", "test",
	} {
		path := filepath.Join(dir, "usr/bin", applet)
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		if err := os.Symlink("busybox", path); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o777); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Join(dir, "tmp"), fs.ModeSticky|0o777); err != nil {
		return err
	}
	return writeFiles(dir, map[string]string{
		"etc/passwd": passwd, "etc/group": group,
		"etc/ld.so.conf": "/lib/x86_64-linux-gnu\n/usr/lib/x86_64-linux-gnu\n",
	})
}

const (
	passwd = "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n" +
		"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" +
		"nonroot:x:65532:65532:nonroot:/home/nonroot:/usr/sbin/nologin\n"
	group = "root:x:0:\nadm:x:4:\nwww-data:x:33:\nnogroup:x:65534:\nnonroot:x:65532:\n"
)

func writeFiles(dir string, files map[string]string) error {
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// assemble puts the layers together into images.
func (b *builder) assemble(ctx context.Context) error {
	unlock, err := b.store.lock(unix.LOCK_SH)
	if err != nil {
		return err
	}
	defer unlock()
	for _, do := range []func(context.Context) error{
		b.bases, b.ownImages, b.kubernetesImages, b.thirdPartyImages, b.imagesOfModules, b.machineImage,
		b.terminalImage,
	} {
		if err := do(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return b.writeVector()
}

func (b *builder) bases(context.Context) error {
	certificates := filepath.Join(b.Cache, MachineRootDir, "etc/ssl/certs/ca-certificates.crt")
	static, err := b.cachedLayer("base-static", []string{recipeRevision}, func() (Layer, error) {
		return b.store.WriteLayer([]LayerEntry{
			{Path: "etc/passwd", Content: []byte(passwd), Mode: 0o644},
			{Path: "etc/group", Content: []byte(group), Mode: 0o644},
			{Path: "etc/ssl/certs/ca-certificates.crt", Source: certificates, Mode: 0o644},
			{Path: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		})
	})
	if err != nil {
		return err
	}
	b.layers[string(baseStatic)] = static
	for _, name := range []string{"network", "nginx", "machine"} {
		dir := filepath.Join(b.Cache, "rootfs", name)
		stamp, err := os.ReadFile(filepath.Join(b.Cache, "stamps", "rootfs-"+name))
		if err != nil {
			return err
		}
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		layer, err := b.cachedLayer("base-"+name, []string{string(stamp), info.ModTime().String()},
			func() (Layer, error) { return b.store.WriteTreeLayer(dir) })
		if err != nil {
			return err
		}
		b.layers[name] = layer
	}
	return nil
}

// binaryLayer is a layer with programs at /usr/local/bin, or at the paths that are given.
func (b *builder) binaryLayer(name string, entries ...LayerEntry) (Layer, error) {
	var sources []string
	description := []string{name}
	for _, entry := range entries {
		if entry.Source != "" {
			sources = append(sources, entry.Source)
		}
		description = append(description, entry.Path, entry.Link, string(entry.Content), entry.Mode.String())
	}
	inputs, err := fileInputs(sources...)
	if err != nil {
		return Layer{}, err
	}
	return b.cachedLayer("bin-"+name, append(description, inputs...),
		func() (Layer, error) { return b.store.WriteLayer(entries) })
}

func (b *builder) ownImages(context.Context) error {
	for _, p := range b.allPrograms() {
		if !p.image {
			continue
		}
		if _, err := os.Stat(b.bin(p.name)); err != nil {
			continue
		}
		layers := []Layer{b.layers[string(p.base)]}
		if len(p.layer.Files) > 0 {
			layer, err := b.programLayer(p.layer)
			if err != nil {
				return err
			}
			layers = append(layers, layer)
		}
		layer, err := b.binaryLayer(p.name,
			LayerEntry{Path: "usr/local/bin/" + p.name, Source: b.bin(p.name), Mode: 0o755})
		if err != nil {
			return err
		}
		spec := ImageSpec{Layers: append(layers, layer), Entrypoint: []string{"/usr/local/bin/" + p.name}, User: p.user}
		if err := b.writeOwnImage(p.name, spec); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) programLayer(layer ProgramLayer) (Layer, error) {
	var entries []LayerEntry
	for _, file := range layer.Files {
		entries = append(entries, LayerEntry{Path: file.Path, Source: b.bin(file.Program), Mode: 0o755})
	}
	return b.binaryLayer(layer.Name, entries...)
}

// imagesOfModules are those of components, and those of extensions beside the ones of their own programs.
func (b *builder) imagesOfModules(context.Context) error {
	for _, image := range b.moduleImages() {
		layer, err := b.programLayer(image.Layer)
		if err != nil {
			return err
		}
		from, user := groundOf(image.Privileged)
		err = b.writeImage(ImageSpec{
			References: []string{image.Reference}, Layers: []Layer{b.layers[string(from)], layer},
			Entrypoint: []string{"/" + image.Layer.Files[0].Path}, User: user,
		})
		if err != nil {
			return fmt.Errorf("image %s: %w", image.Reference, err)
		}
	}
	return nil
}

func (b *builder) kubernetesImages(context.Context) error {
	for _, version := range b.kubernetesVersions() {
		entries := []LayerEntry{
			{Path: "usr/local/bin/kubernetes", Source: b.bin("kubernetes-v" + version), Mode: 0o755},
		}
		names := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet"}
		for _, name := range names {
			entries = append(entries, LayerEntry{Path: "usr/local/bin/" + name, Link: "kubernetes"})
		}
		layer, err := b.binaryLayer("kubernetes-"+version, entries...)
		if err != nil {
			return err
		}
		for _, name := range names {
			spec := ImageSpec{
				Layers: []Layer{b.layers[string(baseStatic)], layer}, Entrypoint: []string{"/usr/local/bin/" + name},
			}
			registry := "registry.k8s.io"
			switch name {
			case "kube-proxy":
				spec.Layers[0] = b.layers[string(baseNetwork)]
			case "kubelet":
				registry = ownRegistry
			}
			spec.References = []string{fmt.Sprintf("%s/%s:v%s", registry, name, version)}
			if err := b.writeImage(spec); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *builder) thirdPartyImages(context.Context) error {
	pauseLayer, err := b.binaryLayer("pause", LayerEntry{Path: "pause", Source: b.bin("pause"), Mode: 0o755})
	if err != nil {
		return err
	}
	pluginsLayer, err := b.binaryLayer("cni-plugins", b.cniPluginEntries()...)
	if err != nil {
		return err
	}
	for _, spec := range []ImageSpec{
		{
			References: []string{"registry.k8s.io/pause:3.10"}, Layers: []Layer{pauseLayer},
			Entrypoint: []string{"/pause"}, User: "65535:65535",
		},
		{
			References: []string{ownRegistry + "/cni-plugins:v1.8.0"},
			Layers:     []Layer{b.layers[string(baseNetwork)], pluginsLayer}, Entrypoint: []string{"/install"},
		},
		{
			References: []string{"docker.io/library/nginx:latest", "docker.io/library/nginx:1.22.1"},
			Layers:     []Layer{b.layers["nginx"]},
			Entrypoint: []string{"/usr/sbin/nginx", "-g", "daemon off;"},
		},
	} {
		if err := b.writeImage(spec); err != nil {
			return err
		}
	}
	return nil
}

// installPlugins copies the CNI plugins to the node; the folder is the first argument.
const installPlugins = "#!/bin/sh\nset -e\nfor plugin in /opt/cni/bin/*; do\n  cp \"$plugin\" \"$1/.$(basename " +
	"\"$plugin\").new\"\n  mv \"$1/.$(basename \"$plugin\").new\" \"$1/$(basename \"$plugin\")\"\ndone\n"

// cniPluginEntries are the reference plugins and those of extensions, and what installs them.
func (b *builder) cniPluginEntries() []LayerEntry {
	var entries []LayerEntry
	add := func(plugin, program string) {
		entries = append(entries, LayerEntry{Path: "opt/cni/bin/" + plugin, Source: b.bin(program), Mode: 0o755})
	}
	for _, pkg := range cniPlugins.Packages {
		add(filepath.Base(pkg), filepath.Base(pkg))
	}
	for _, e := range b.Extensions {
		for _, plugin := range e.CNIPlugins {
			add(plugin, cniProgram(plugin))
		}
	}
	return append(entries, LayerEntry{Path: "install", Content: []byte(installPlugins), Mode: 0o755})
}

// machineVersion is the version of Debian, as in charts/images.yaml.
const machineVersion = "12.11.0"

// machineImage is the root file system of machines with containerd and node-agent, and what extensions lay over it, as
// the boot files of the provider whose machines boot it.
func (b *builder) machineImage(context.Context) error {
	if _, err := os.Stat(b.bin("node-agent")); err != nil {
		return nil
	}
	var entries []LayerEntry
	for _, name := range append([]string{"node-agent"}, RuntimePrograms...) {
		entries = append(entries, LayerEntry{Path: "usr/local/bin/" + name, Source: b.bin(name), Mode: 0o755})
	}
	for _, e := range b.Extensions {
		if e.MachineFiles == "" {
			continue
		}
		files, err := entriesOf(filepath.Join(b.Root, e.Dir, e.MachineFiles))
		if err != nil {
			return fmt.Errorf("files of %s for machines: %w", e.Name, err)
		}
		entries = append(entries, files...)
	}
	if len(b.Env) > 0 {
		entries = append(entries, LayerEntry{Path: SystemdEnvFile, Content: []byte(SystemdEnv(b.Env)), Mode: 0o644})
	}
	layer, err := b.binaryLayer("machine", entries...)
	if err != nil {
		return err
	}
	return b.writeOwnImage("machine-debian", ImageSpec{
		// The version under which the image vector and cloud profiles know it.
		References: []string{ownRegistry + "/machine-debian:" + machineVersion},
		Layers:     []Layer{b.layers["machine"], layer}, Entrypoint: []string{"/lib/systemd/systemd"},
	})
}

// terminalApplets are programs of busybox for people who type.
var terminalApplets = []string{
	"sh", "ls", "cat", "ps", "wget", "nslookup", "id", "env", "sleep", "grep", "sed", "awk", "cp", "mv", "rm", "mkdir",
	"head", "tail", "echo", "printf", "hostname", "nc", "vi", "less", "find", "xargs", "date", "touch", "chmod", "true",
	"false", "test", "clear", "reset", "stty", "watch", "sort", "uniq", "wc", "cut", "tr", "tee", "diff", "base64",
	"tar", "gzip", "gunzip", "which", "pwd", "seq", "basename", "dirname", "sha256sum", "uname", "whoami", "time",
}

// terminalImage is what terminals of the dashboard run in: kubectl, and a shell that needs nothing else.
func (b *builder) terminalImage(context.Context) error {
	busybox := filepath.Join(b.Cache, "rootfs/network/usr/bin/busybox")
	for _, needed := range []string{b.bin(Kubectl), busybox} {
		if _, err := os.Stat(needed); err != nil {
			return nil
		}
	}
	layer, err := b.binaryLayer("terminal", terminalEntries(busybox, b.bin(Kubectl))...)
	if err != nil {
		return err
	}
	return b.writeOwnImage("terminal", ImageSpec{
		Layers: []Layer{b.layers[string(baseStatic)], layer}, Entrypoint: []string{"/bin/sh"}, User: nonRoot,
	})
}

func terminalEntries(busybox, kubectl string) []LayerEntry {
	entries := []LayerEntry{
		{Path: "bin/busybox", Source: busybox, Mode: 0o755},
		{Path: "usr/local/bin/kubectl", Source: kubectl, Mode: 0o755},
	}
	for _, applet := range terminalApplets {
		entries = append(entries, LayerEntry{Path: "bin/" + applet, Link: "busybox"})
	}
	return entries
}

// SystemdEnvFile is a path, without the leading slash, of what SystemdEnv returns.
const SystemdEnvFile = "etc/systemd/system.conf.d/20-environment.conf"

// SystemdEnv is a configuration of systemd with which all services have these variables ("NAME=value", without spaces).
func SystemdEnv(env []string) string {
	return "[Manager]\nDefaultEnvironment=" + strings.Join(env, " ") + "\n"
}

// entriesOf are the files and links below a folder, with their content.
func entriesOf(dir string) (entries []LayerEntry, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			entries = append(entries, LayerEntry{Path: name, Link: target})
			return err
		}
		content, err := os.ReadFile(path)
		entries = append(entries, LayerEntry{Path: name, Content: content, Mode: info.Mode().Perm()})
		return err
	})
	return entries, err
}
