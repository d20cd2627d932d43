package images

import "strings"

// Extension is a folder with cmd/<name>, charts/<name> and example/controller-registration.yaml: a program, a chart,
// and how it is registered with a garden. Most need no more than Name and Dir.
type Extension struct {
	// Name is that of its ControllerRegistration, its program, its image and its entry in charts/images.yaml.
	Name string
	// Dir is its folder, below the root of the repository. Its programs belong to the main module.
	Dir string
	// Privileged: its image has tools for networks, and runs as root.
	Privileged bool
	// Programs are others below cmd/ of its folder, for layers or for the node of a landscape.
	Programs []string
	// CNIPlugins are network plugins, whose programs are cmd/cni-<name>. The image cni-plugins brings them to nodes.
	CNIPlugins []string
	// Modules are compiled for it.
	Modules []Module
	// Layer lies in its image, below its program; one without files is left out.
	Layer ProgramLayer
	// Images are others of its own, with entries in charts/images.yaml.
	Images []Image
	// MachineFiles is a folder below Dir. What is in it lies over Debian in the machine image; empty for nothing.
	MachineFiles string
}

// Extensions are those of this repository, which a landscape has unless it is given others.
var Extensions = []Extension{
	{
		Name: "provider-local", Dir: "extensions/provider-local", Privileged: true,
		Programs: []string{"terraform-provider-local", "cni-local-cloud"}, MachineFiles: "machine/rootfs",
		Modules: []Module{terraform, objectStore}, Layer: ProgramLayer{Name: "terraform", Files: []ProgramFile{
			{"usr/local/bin/terraform", "terraform"}, {"usr/local/bin/objectstore", "objectstore"},
			{terraformProvider("registry.terraform.io", "local", "0.1.0"), "terraform-provider-local"},
			{terraformProvider("registry.opentofu.org", "local", "0.1.0"), "terraform-provider-local"},
		}},
	},
	{
		Name: "networking-flannel", Dir: "extensions/networking-flannel", CNIPlugins: []string{"flannel"},
		Modules: []Module{{Name: "flannel", Dir: "images/flannel", Packages: []string{"."}, Output: "flanneld"}},
		Images: []Image{{
			Reference: "ghcr.io/flannel-io/flannel:v0.26.7", Privileged: true,
			Layer: ProgramLayer{Name: "flanneld", Files: []ProgramFile{{"opt/bin/flanneld", "flanneld"}}},
		}},
	},
	{Name: "os-debian", Dir: "extensions/os-debian"},
	{Name: "extension-federation", Dir: "extensions/federation"},
}

// terraform is for providers that run it. OpenTofu is built where there is none.
var terraform = Module{
	Name: "Terraform", Dir: "images/opentofu", Packages: []string{"github.com/opentofu/opentofu/cmd/tofu"},
	Output: "terraform", OnPath: []string{"terraform", "tofu"},
}

// objectStore serves the buckets of the local cloud by S3.
var objectStore = Module{
	Name: "object store", Dir: "images/objectstore", Packages: []string{"."}, Output: "objectstore",
}

// terraformProvider is where Terraform, or OpenTofu, looks for our provider of a type: they name different registries
// as the one that is meant when none is named.
func terraformProvider(registry, kind, version string) string {
	return strings.Join([]string{
		"usr/local/share/terraform/providers", registry, "trellis-garden", kind, version, "linux_amd64",
		"terraform-provider-" + kind + "_v" + version,
	}, "/")
}

// programs of an extension: that of its image, and others.
func (e Extension) programs() []program {
	of := func(name string) program { return program{name: name, pkg: "./" + e.Dir + "/cmd/" + name} }
	own := of(e.Name)
	own.image, own.layer = true, e.Layer
	own.base, own.user = groundOf(e.Privileged)
	all := []program{own}
	for _, name := range e.Programs {
		all = append(all, of(name))
	}
	for _, plugin := range e.CNIPlugins {
		all = append(all, of(cniProgram(plugin)))
	}
	return all
}

// cniProgram is the program of a network plugin of ours.
func cniProgram(plugin string) string { return "cni-" + plugin }

// groundOf says what an image starts from, and who runs in it.
func groundOf(privileged bool) (from base, user string) {
	if privileged {
		return baseNetwork, ""
	}
	return baseStatic, nonRoot
}
