package images

import (
	"context"
	"fmt"
	"os"
	"path"
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
	// layer lies below the program in its image; one without files is left out.
	layer ProgramLayer
}

const (
	ownRegistry = "ghcr.io/trellis-garden"
	nonRoot     = "65532:65532"
)

// moduleImages are all images with what modules are compiled to: those of components and those of extensions.
func (b *builder) moduleImages() []Image {
	all := slices.Clone(componentImages)
	for _, e := range b.Extensions {
		all = append(all, e.Images...)
	}
	return all
}

// allPrograms are all that are built from the main module.
func (b *builder) allPrograms() []program {
	all := slices.Clone(programs)
	for _, e := range b.Extensions {
		all = append(all, e.programs()...)
	}
	return all
}

// programs lists every program that is built from the main module, but those of extensions.
var programs = []program{
	{name: "garden-apiserver", pkg: "./cmd/garden-apiserver", image: true, base: baseStatic, user: nonRoot},
	{
		name: "garden-controller-manager", pkg: "./cmd/garden-controller-manager", image: true, base: baseStatic,
		user: nonRoot,
	},
	{name: "garden-scheduler", pkg: "./cmd/garden-scheduler", image: true, base: baseStatic, user: nonRoot},
	{name: "dashboard", pkg: "./cmd/dashboard", image: true, base: baseStatic, user: nonRoot},
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
}

// Module is a third-party program built from a nested module under images/.
type Module struct {
	// Name is for people.
	Name string
	// Dir is the nested module, below the root of the repository.
	Dir string
	// Packages are its main packages; the binary is called like their last element, unless Output says otherwise.
	Packages []string
	Output   string
	LDFlags  string
	// Tags are build constraints, separated by commas.
	Tags string
	// OnPath are programs one of which becomes Output without a build, where it is in PATH and statically linked.
	// Output is kept then, and when it was built, until somebody removes it.
	OnPath []string
}

// cniPlugins are the reference plugins that nodes need.
var cniPlugins = Module{
	Name: "cni-plugins", Dir: "images/cni",
	Packages: []string{
		"github.com/containernetworking/plugins/plugins/main/bridge",
		"github.com/containernetworking/plugins/plugins/main/loopback",
		"github.com/containernetworking/plugins/plugins/ipam/host-local",
		"github.com/containernetworking/plugins/plugins/meta/portmap",
	},
}

// Image is one with programs that modules are compiled to. The first of its layer is what it runs.
type Image struct {
	// Reference is registry/repository:tag, as in charts/images.yaml.
	Reference string
	// Privileged: it has tools for networks, and runs as root.
	Privileged bool
	Layer      ProgramLayer
}

// ProgramLayer is a layer with programs.
type ProgramLayer struct {
	// Name is unique among layers.
	Name  string
	Files []ProgramFile
}

// ProgramFile is a program of BinDir at a path in an image, without a leading slash.
type ProgramFile struct{ Path, Program string }

// componentModules are programs of others that components of shoots run, componentImages their images.
var (
	componentModules = []Module{coreDNS, metricsServer}
	componentImages  = []Image{
		{
			Reference: "registry.k8s.io/coredns/coredns:v1.12.4",
			Layer:     ProgramLayer{Name: "coredns", Files: []ProgramFile{{"coredns", "coredns"}}},
		},
		{
			Reference: "registry.k8s.io/metrics-server/metrics-server:" + metricsServerVersion,
			Layer:     ProgramLayer{Name: "metrics-server", Files: []ProgramFile{{"metrics-server", "metrics-server"}}},
		},
	}
)

var coreDNS = Module{Name: "CoreDNS", Dir: "images/coredns", Packages: []string{"github.com/coredns/coredns"}}

// metricsServerVersion is that of its go.mod. The program tells it as its own, so it is linked in.
const metricsServerVersion = "v0.9.0"

var metricsServer = Module{
	Name: "metrics-server", Dir: "images/metrics-server",
	Packages: []string{"sigs.k8s.io/metrics-server/cmd/metrics-server"},
	LDFlags:  "-s -w -X k8s.io/client-go/pkg/version.gitVersion=" + metricsServerVersion,
}

// containerdVersion is that of its go.mod. The programs tell it as their own, so it is linked in.
const containerdVersion = "2.4.2"

const (
	containerdPackage = "github.com/containerd/containerd/v2"
	containerdFlags   = "-s -w -X " + containerdPackage + "/version.Version=" + containerdVersion
)

// containerd is the container runtime of machines and of the landscape's node, without what neither has: other
// snapshotters than overlayfs, and tracing.
var containerd = Module{
	Name: "containerd", Dir: "images/containerd",
	Packages: []string{containerdPackage + "/cmd/containerd", containerdPackage + "/cmd/ctr"},
	LDFlags:  containerdFlags, Tags: "urfave_cli_no_docs,no_devmapper,no_zfs,no_tracing",
}

// containerdShim watches over the containers of one pod. Many of it run, so it leaves gRPC out, as its releases do.
var containerdShim = Module{
	Name: "containerd-shim-runc-v2", Dir: "images/containerd",
	Packages: []string{containerdPackage + "/cmd/containerd-shim-runc-v2"},
	LDFlags:  containerdFlags, Tags: "urfave_cli_no_docs,no_grpc",
}

// RuntimePrograms are those that run containers. They lie in BinDir, and on machines and nodes in /usr/local/bin.
var RuntimePrograms = []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc"}

// KubernetesVersions are those that a repository can build: the default one, and others for which there is a go.mod.
func KubernetesVersions(root string) ([]string, error) {
	files, err := os.ReadDir(filepath.Join(root, kubernetesDir))
	if err != nil {
		return nil, fmt.Errorf("versions of Kubernetes: %w", err)
	}
	versions := []string{DefaultKubernetesVersion}
	for _, file := range files {
		version, ok := strings.CutSuffix(file.Name(), ".mod")
		if version, isOther := strings.CutPrefix(version, "go-"); ok && isOther {
			versions = append(versions, version)
		}
	}
	return versions, nil
}

// kubernetesDir is Kubernetes' nested module, below the root of the repository.
const kubernetesDir = "images/kubernetes"

// kubernetes is the module of one version of Kubernetes; the default version is that of go.mod, the others have a
// go-<version>.mod beside it.
func kubernetes(version string) Module {
	return ofKubernetes("kubernetes", version, ".")
}

// Kubectl is the name of kubectl in BinDir. It is of the default version only, and in the image of terminals.
const Kubectl = "kubectl-v" + DefaultKubernetesVersion

// kubectl is what users and tests run: one process for each call, so it is not a face of the Kubernetes binary, which
// starts twice as long.
var kubectl = ofKubernetes("kubectl", DefaultKubernetesVersion, "./kubectl")

// ofKubernetes is a program of Kubernetes' module, which tells the version.
func ofKubernetes(name, version, pkg string) Module {
	info := "k8s.io/component-base/version"
	major, minor := "", ""
	if parts := strings.SplitN(version, ".", 3); len(parts) == 3 {
		major, minor = parts[0], parts[1]
	}
	flags := []string{"-s", "-w",
		"-X", info + ".gitVersion=v" + version, "-X", info + ".gitMajor=" + major, "-X", info + ".gitMinor=" + minor,
		"-X", info + ".gitTreeState=clean", "-X", "k8s.io/client-go/pkg/version.gitVersion=v" + version,
	}
	return Module{
		Name: name + "-v" + version, Dir: kubernetesDir, Packages: []string{pkg}, Output: name + "-v" + version,
		LDFlags: strings.Join(flags, " "),
	}
}

// buildPrograms compiles all programs of the main module in one call, which links only what changed: a program does not
// say of which commit it is, as it would be another one, in another image, after each.
func (b *builder) buildPrograms(ctx context.Context) error {
	all := b.allPrograms()
	packages := make([]string, 0, len(all))
	for _, p := range all {
		if len(b.Programs) == 0 || slices.Contains(b.Programs, p.name) {
			packages = append(packages, p.pkg)
		}
	}
	arguments := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", b.binDir() + "/"},
		packages...)
	return run(ctx, b.log, b.Root, []string{"CGO_ENABLED=0"}, "go", arguments...)
}

// buildModule provides the programs of a nested module.
func (b *builder) buildModule(ctx context.Context, m Module) error {
	if taken, err := b.takeFromPath(m); taken || err != nil {
		return err
	}
	flags := b.flagsOf(m)
	key, err := b.moduleKey(ctx, m, flags)
	if err == nil {
		p := product{name: m.Name, key: key, dir: b.binDir(), files: m.outputs()}
		err = b.provide(ctx, p, func(ctx context.Context) error { return b.compileModule(ctx, m, flags) })
	}
	if err != nil {
		return fmt.Errorf("building %s in %s: %w", m.Name, m.Dir, err)
	}
	return nil
}

// outputs are the names of a module's programs in BinDir.
func (m Module) outputs() []string {
	if m.Output != "" {
		return []string{m.Output}
	}
	var names []string
	for _, pkg := range m.Packages {
		names = append(names, path.Base(pkg))
	}
	return names
}

// modFile is the file that says what a module is compiled from.
func (b *builder) modFile(m Module) string {
	if alternative := "go-" + strings.TrimPrefix(m.Name, "kubernetes-v") + ".mod"; m.Dir == kubernetesDir {
		if _, err := os.Stat(filepath.Join(b.Root, m.Dir, alternative)); err == nil {
			return alternative
		}
	}
	return "go.mod"
}

// flagsOf are those that choose what a module is compiled from.
func (b *builder) flagsOf(m Module) (flags []string) {
	if m.Tags != "" {
		flags = append(flags, "-tags", m.Tags)
	}
	if file := b.modFile(m); file != "go.mod" {
		flags = append(flags, "-modfile="+file)
	}
	return flags
}

// moduleEnvironment is that of the go command in nested modules: each is built on its own.
var moduleEnvironment = []string{"CGO_ENABLED=0", "GOWORK=off"}

// linkFlags of a module's programs.
func (m Module) linkFlags() string {
	if m.LDFlags == "" {
		return "-s -w"
	}
	return m.LDFlags
}

// compileModule compiles the programs of a nested module.
func (b *builder) compileModule(ctx context.Context, m Module, flags []string) error {
	arguments := slices.Concat([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", m.linkFlags()}, flags,
		[]string{"-o", b.binDir() + "/" + m.Output}, m.Packages)
	return run(ctx, b.log, filepath.Join(b.Root, m.Dir), moduleEnvironment, "go", arguments...)
}

func (b *builder) buildContainerd(ctx context.Context) error {
	if err := b.buildModule(ctx, containerd); err != nil {
		return err
	}
	return b.buildModule(ctx, containerdShim)
}

// takeFromPath takes a program from PATH where a module allows that, and tells whether there is nothing to build.
func (b *builder) takeFromPath(m Module) (taken bool, err error) {
	if len(m.OnPath) == 0 {
		return false, nil
	}
	target := b.bin(m.Output)
	if _, err := os.Stat(target); err == nil {
		return true, nil
	}
	for _, name := range m.OnPath {
		if found, ok := staticProgramOnPath(name); ok {
			b.log("using " + found)
			return true, copyFile(found, target)
		}
	}
	return false, nil
}
