package images

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

var (
	machinePackages = []string{
		"systemd", "systemd-sysv", "dbus", "iptables", "ipset", "iproute2", "conntrack", "kmod", "ca-certificates",
		"procps",
		"util-linux-extra",
	}
	networkPackages = []string{"iptables", "ipset", "conntrack", "busybox-static"}
	nginxPackages   = []string{"nginx-light", "busybox-static", "ca-certificates"}
)

// buildSystems makes the root file systems from Debian packages.
func (b *builder) buildSystems(ctx context.Context) error {
	systems := []struct {
		name, dir string
		packages  []string
		make      func(ctx context.Context, dir, name string, packages []string) error
		finish    func(dir string) error
	}{
		{"machine", MachineRootDir, machinePackages, b.debian.bootstrap, finishMachine},
		{"network", "rootfs/network", networkPackages, b.debian.extract, finishNetwork},
		{"nginx", "rootfs/nginx", nginxPackages, b.debian.extract, finishNginx},
	}
	for _, s := range systems {
		stamp := filepath.Join(b.Cache, "stamps", "rootfs-"+s.name)
		key := checksum(append([]string{recipeRevision}, s.packages...)...)
		if data, err := os.ReadFile(stamp); err == nil && string(data) == key {
			continue
		}
		err := b.step(ctx, "Debian: "+s.name, func(ctx context.Context) error {
			dir := filepath.Join(b.Cache, s.dir)
			if err := s.make(ctx, dir, s.name, s.packages); err != nil {
				return err
			}
			return s.finish(dir)
		})
		if err != nil {
			return err
		}
		if err := writeFileAtomically(stamp, []byte(key)); err != nil {
			return err
		}
	}
	return nil
}

// recipeRevision is raised when the functions below change, so that root file systems are made anew.
const recipeRevision = "1"

// finishMachine sets what every machine has: no host name, no services that a machine in a pod cannot run.
func finishMachine(dir string) error {
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
	for _, do := range []func(context.Context) error{
		b.bases, b.ownImages, b.kubernetesImages, b.thirdPartyImages, b.machineImage,
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
	for _, p := range allPrograms() {
		if !p.image {
			continue
		}
		if _, err := os.Stat(b.bin(p.name)); err != nil {
			continue
		}
		entries := []LayerEntry{{Path: "usr/local/bin/" + p.name, Source: b.bin(p.name), Mode: 0o755}}
		layers := []Layer{b.layers[string(p.base)]}
		if p.name == "provider-local" {
			terraform, err := b.terraformLayer()
			if err != nil {
				return err
			}
			layers = append(layers, terraform)
		}
		layer, err := b.binaryLayer(p.name, entries...)
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

// TerraformProviderVersion is the version under which our provider lies in the mirror of the provider-local image.
const TerraformProviderVersion = "0.1.0"

func (b *builder) terraformLayer() (Layer, error) {
	mirror := "usr/local/share/terraform/providers/registry.terraform.io/trellis-garden/local/" +
		TerraformProviderVersion + "/linux_amd64/terraform-provider-local_v" + TerraformProviderVersion
	return b.binaryLayer("terraform",
		LayerEntry{Path: "usr/local/bin/terraform", Source: b.bin("terraform"), Mode: 0o755},
		LayerEntry{Path: mirror, Source: b.bin("terraform-provider-local"), Mode: 0o755},
		LayerEntry{
			Path:   strings.Replace(mirror, "registry.terraform.io", "registry.opentofu.org", 1),
			Source: b.bin("terraform-provider-local"), Mode: 0o755,
		},
	)
}

func (b *builder) kubernetesImages(context.Context) error {
	for _, version := range b.kubernetesVersions() {
		entries := []LayerEntry{
			{Path: "usr/local/bin/kubernetes", Source: b.bin("kubernetes-v" + version), Mode: 0o755},
		}
		names := []string{
			"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl",
		}
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
	corednsLayer, err := b.binaryLayer("coredns", LayerEntry{Path: "coredns", Source: b.bin("coredns"), Mode: 0o755})
	if err != nil {
		return err
	}
	metricsServerLayer, err := b.binaryLayer("metrics-server",
		LayerEntry{Path: "metrics-server", Source: b.bin("metrics-server"), Mode: 0o755})
	if err != nil {
		return err
	}
	var plugins []LayerEntry
	for _, name := range append(b.cniPluginNames(), "cni-flannel") {
		target := strings.TrimPrefix(name, "cni-")
		plugins = append(plugins, LayerEntry{Path: "opt/cni/bin/" + target, Source: b.bin(name), Mode: 0o755})
	}
	plugins = append(plugins, LayerEntry{Path: "install", Content: []byte(installPlugins), Mode: 0o755})
	pluginsLayer, err := b.binaryLayer("cni-plugins", plugins...)
	if err != nil {
		return err
	}
	flannelLayer, err := b.binaryLayer("flanneld",
		LayerEntry{Path: "opt/bin/flanneld", Source: b.bin("flanneld"), Mode: 0o755})
	if err != nil {
		return err
	}
	static, network := b.layers[string(baseStatic)], b.layers[string(baseNetwork)]
	for _, spec := range []ImageSpec{
		{
			References: []string{"registry.k8s.io/pause:3.10"}, Layers: []Layer{pauseLayer},
			Entrypoint: []string{"/pause"}, User: "65535:65535",
		},
		{
			References: []string{"registry.k8s.io/coredns/coredns:v1.12.4"}, Layers: []Layer{static, corednsLayer},
			Entrypoint: []string{"/coredns"},
		},
		{
			References: []string{"registry.k8s.io/metrics-server/metrics-server:" + metricsServerVersion},
			Layers:     []Layer{static, metricsServerLayer}, Entrypoint: []string{"/metrics-server"},
		},
		{
			References: []string{ownRegistry + "/cni-plugins:v1.8.0"}, Layers: []Layer{network, pluginsLayer},
			Entrypoint: []string{"/install"},
		},
		{
			References: []string{"ghcr.io/flannel-io/flannel:v0.26.7"}, Layers: []Layer{network, flannelLayer},
			Entrypoint: []string{"/opt/bin/flanneld"},
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

func (b *builder) cniPluginNames() []string {
	var names []string
	for _, pkg := range cniPlugins.packages {
		names = append(names, filepath.Base(pkg))
	}
	return names
}

// machineVersion is the version of Debian, as in charts/images.yaml.
const machineVersion = "12.11.0"

// machineImage is the root file system of machines with containerd, node-agent and the boot files of the local
// provider.
func (b *builder) machineImage(context.Context) error {
	if _, err := os.Stat(b.bin("node-agent")); err != nil {
		return nil
	}
	var entries []LayerEntry
	for _, name := range append([]string{"node-agent"}, RuntimePrograms...) {
		entries = append(entries, LayerEntry{Path: "usr/local/bin/" + name, Source: b.bin(name), Mode: 0o755})
	}
	overlay := filepath.Join(b.Root, "extensions/provider-local/machine/rootfs")
	err := filepath.WalkDir(overlay, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(overlay, path)
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
	if err != nil {
		return err
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
