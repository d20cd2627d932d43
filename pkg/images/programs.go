package images

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// base names the root file system that an image starts from.
type base string

const (
	// baseStatic has CA certificates, a non-root user and /tmp only.
	baseStatic base = "static"
	// baseNetwork adds iptables, ipset, conntrack and a shell from Debian.
	baseNetwork base = "network"
)

// program is a Go program of this repository.
type program struct {
	// name is that of the binary and, where image is set, of the image ghcr.io/trellis-garden/<name>.
	name string
	// pkg is its main package.
	pkg   string
	image bool
	base  base
	// user is the numeric user that the image runs as; empty means root.
	user string
}

const (
	ownRegistry = "ghcr.io/trellis-garden"
	nonRoot     = "65532:65532"
)

// Extension is one of this repository. It has a chart below charts/, and example/controller-registration.yaml.
type Extension struct {
	// Name is that of its ControllerRegistration, its program, its image and its entry in charts/images.yaml.
	Name string
	// Dir is its folder, below the root of the repository.
	Dir string
	// privileged images have tools for networks, and run as root.
	privileged bool
}

// Extensions are all of this repository. They are built, and registered with the garden of a local landscape.
var Extensions = []Extension{
	{Name: "provider-local", Dir: "extensions/provider-local", privileged: true},
	{Name: "networking-flannel", Dir: "extensions/networking-flannel"},
	{Name: "os-debian", Dir: "extensions/os-debian"},
	{Name: "extension-federation", Dir: "extensions/federation"},
}

// program of an extension.
func (e Extension) program() program {
	p := program{name: e.Name, pkg: "./" + e.Dir + "/cmd/" + e.Name, image: true, base: baseStatic, user: nonRoot}
	if e.privileged {
		p.base, p.user = baseNetwork, ""
	}
	return p
}

// allPrograms are all that are built from the main module.
func allPrograms() []program {
	all := slices.Clone(programs)
	for _, e := range Extensions {
		all = append(all, e.program())
	}
	return all
}

// programs lists every program that is built from the main module, but those of Extensions.
var programs = []program{
	{name: "garden-apiserver", pkg: "./cmd/garden-apiserver", image: true, base: baseStatic, user: nonRoot},
	{
		name: "garden-controller-manager", pkg: "./cmd/garden-controller-manager", image: true, base: baseStatic,
		user: nonRoot,
	},
	{name: "garden-scheduler", pkg: "./cmd/garden-scheduler", image: true, base: baseStatic, user: nonRoot},
	{name: "gardenlet", pkg: "./cmd/gardenlet", image: true, base: baseStatic, user: nonRoot},
	{name: "resource-manager", pkg: "./cmd/resource-manager", image: true, base: baseStatic, user: nonRoot},
	{name: "etcd-steward", pkg: "./cmd/etcd-steward", image: true, base: baseStatic},
	{name: "vpn", pkg: "./cmd/vpn", image: true, base: baseNetwork},
	{name: "cluster-autoscaler", pkg: "./cmd/cluster-autoscaler", image: true, base: baseStatic, user: nonRoot},
	{name: "federation", pkg: "./cmd/federation", image: true, base: baseStatic, user: nonRoot},
	{name: "node-agent", pkg: "./cmd/node-agent"},
	{name: "pause", pkg: "./images/pause"},
	{name: "trellisctl", pkg: "./cmd/trellisctl"},
	{
		name: "machine-controller-manager",
		pkg:  "github.com/gardener/machine-controller-manager/cmd/machine-controller-manager", image: true,
		base: baseStatic, user: nonRoot,
	},
	{name: "terraform-provider-local", pkg: "./extensions/provider-local/cmd/terraform-provider-local"},
	{name: "cni-local-cloud", pkg: "./extensions/provider-local/cmd/cni-local-cloud"},
	{name: "cni-flannel", pkg: "./extensions/networking-flannel/cmd/cni-flannel"},
}

// module is a third-party program built from a nested module under images/.
type module struct {
	name string
	// dir is the nested module, below the root of the repository.
	dir string
	// packages are its main packages; the binary is called like their last element, unless output says otherwise.
	packages []string
	output   string
	ldflags  string
	// tags are build constraints, separated by commas.
	tags string
}

// cniPlugins are the reference plugins that nodes need.
var cniPlugins = module{
	name: "cni-plugins", dir: "images/cni",
	packages: []string{
		"github.com/containernetworking/plugins/plugins/main/bridge",
		"github.com/containernetworking/plugins/plugins/main/loopback",
		"github.com/containernetworking/plugins/plugins/ipam/host-local",
		"github.com/containernetworking/plugins/plugins/meta/portmap",
	},
}

var coredns = module{name: "coredns", dir: "images/coredns", packages: []string{"github.com/coredns/coredns"}}

// metricsServerVersion is that of its go.mod. The program tells it as its own, so it is linked in.
const metricsServerVersion = "v0.9.0"

var metricsServer = module{
	name: "metrics-server", dir: "images/metrics-server",
	packages: []string{"sigs.k8s.io/metrics-server/cmd/metrics-server"},
	ldflags:  "-s -w -X k8s.io/client-go/pkg/version.gitVersion=" + metricsServerVersion,
}

var flannel = module{name: "flanneld", dir: "images/flannel", packages: []string{"."}, output: "flanneld"}

// containerdVersion is that of its go.mod. The programs tell it as their own, so it is linked in.
const containerdVersion = "2.4.2"

const (
	containerdPackage = "github.com/containerd/containerd/v2"
	containerdFlags   = "-s -w -X " + containerdPackage + "/version.Version=" + containerdVersion
)

// containerd is the container runtime of machines and of the landscape's node, without what neither has: other
// snapshotters than overlayfs, and tracing.
var containerd = module{
	name: "containerd", dir: "images/containerd",
	packages: []string{containerdPackage + "/cmd/containerd", containerdPackage + "/cmd/ctr"},
	ldflags:  containerdFlags, tags: "urfave_cli_no_docs,no_devmapper,no_zfs,no_tracing",
}

// containerdShim watches over the containers of one pod. Many of it run, so it leaves gRPC out, as its releases do.
var containerdShim = module{
	name: "containerd-shim-runc-v2", dir: "images/containerd",
	packages: []string{containerdPackage + "/cmd/containerd-shim-runc-v2"},
	ldflags:  containerdFlags, tags: "urfave_cli_no_docs,no_grpc",
}

// RuntimePrograms are those that run containers. They lie in BinDir, and on machines and nodes in /usr/local/bin.
var RuntimePrograms = []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc"}

// kubernetes is the module of one version of Kubernetes; the default version is that of go.mod, the others have a
// go-<version>.mod beside it.
func kubernetes(version string) module {
	info := "k8s.io/component-base/version"
	major, minor := "", ""
	if parts := strings.SplitN(version, ".", 3); len(parts) == 3 {
		major, minor = parts[0], parts[1]
	}
	flags := []string{"-s", "-w",
		"-X", info + ".gitVersion=v" + version, "-X", info + ".gitMajor=" + major, "-X", info + ".gitMinor=" + minor,
		"-X", info + ".gitTreeState=clean", "-X", "k8s.io/client-go/pkg/version.gitVersion=v" + version,
	}
	return module{
		name: "kubernetes-v" + version, dir: "images/kubernetes", packages: []string{"."},
		output: "kubernetes-v" + version, ldflags: strings.Join(flags, " "),
	}
}

// buildPrograms compiles all programs of the main module in one call, which links only what changed.
func (b *builder) buildPrograms(ctx context.Context) error {
	all := allPrograms()
	packages := make([]string, 0, len(all))
	for _, p := range all {
		if len(b.Programs) == 0 || slices.Contains(b.Programs, p.name) {
			packages = append(packages, p.pkg)
		}
	}
	arguments := append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", b.binDir() + "/"}, packages...)
	return run(ctx, b.log, b.Root, []string{"CGO_ENABLED=0"}, "go", arguments...)
}

// buildModule compiles the programs of a nested module.
func (b *builder) buildModule(ctx context.Context, m module) error {
	flags := m.ldflags
	if flags == "" {
		flags = "-s -w"
	}
	arguments := []string{"build", "-trimpath", "-ldflags", flags}
	if m.tags != "" {
		arguments = append(arguments, "-tags", m.tags)
	}
	dir := filepath.Join(b.Root, m.dir)
	if alternative := "go-" + strings.TrimPrefix(m.name, "kubernetes-v") + ".mod"; m.dir == "images/kubernetes" {
		if _, err := os.Stat(filepath.Join(dir, alternative)); err == nil {
			arguments = append(arguments, "-modfile="+alternative)
		}
	}
	output := b.binDir() + "/"
	if m.output != "" {
		output += m.output
	}
	arguments = append(append(arguments, "-o", output), m.packages...)
	if err := run(ctx, b.log, dir, []string{"CGO_ENABLED=0"}, "go", arguments...); err != nil {
		return fmt.Errorf("building %s in %s: %w", m.name, m.dir, err)
	}
	return nil
}

func (b *builder) buildContainerd(ctx context.Context) error {
	if err := b.buildModule(ctx, containerd); err != nil {
		return err
	}
	return b.buildModule(ctx, containerdShim)
}

// findTerraform takes a statically linked terraform or tofu from PATH, and builds OpenTofu where there is none.
func (b *builder) findTerraform(ctx context.Context) error {
	target := filepath.Join(b.binDir(), "terraform")
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	for _, name := range []string{"terraform", "tofu"} {
		if path, ok := staticProgramOnPath(name); ok {
			b.log("using " + path)
			return copyFile(path, target)
		}
	}
	m := module{
		name: "OpenTofu", dir: "images/opentofu", packages: []string{"github.com/opentofu/opentofu/cmd/tofu"},
		output: "terraform",
	}
	return b.buildModule(ctx, m)
}
