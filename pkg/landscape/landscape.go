// Package landscape is the local landscape behind `make up`, `make status` and `make down`: nodes made by package node,
// one unless more are asked for, a Kubernetes cluster on them, and a garden with a seed and shoots in that cluster.
//
// A landscape has a name, unique on the machine, and one state folder. What `up` does is a list of phases; each can
// be run again at any time and only does what is missing. `up` waits by asking again, as it is a command that ends,
// not a controller.
package landscape

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/trellis-garden/trellis/pkg/images"
)

// DefaultName is the name of the landscape that `make up` starts.
const DefaultName = "local"

// Addresses and names inside the nodes' network; docs/contracts/local-landscape.md explains them. They are the same
// in every landscape, because each has a network of its own. nodeName and nodeIP are the first node's.
const (
	nodeName       = "local-node"
	nodeIP         = "172.18.0.2"
	nodeBits       = 24
	nodeGateway    = "172.18.0.1"
	nodeBridge     = "node0"
	podNetwork     = "10.1.0.0/16"
	serviceNetwork = "10.2.0.0/16"
	kubernetesIP   = "10.2.0.1"
	dnsServiceIP   = "10.2.0.10"
	clusterDomain  = "cluster.local"
	apiPort        = 6443
	gatewayPort    = 443
	registryPort   = 5000
	// domain is the DNS zone of the landscape, served by the local cloud.
	domain     = "local.trellis.garden"
	zonePort   = 5353
	gardenHost = "api.garden." + domain
	// discoveryHost is where infrastructures find the keys that verify tokens of WorkloadIdentities.
	discoveryHost = "discovery.garden." + domain
	tokenIssuer   = "https://" + discoveryHost + "/garden/workload-identity/issuer"
	region        = "local"
	identity      = "local"
	seedName      = "local"
	demoProject   = "demo"
	gardenNS      = "garden"
	systemNS      = "kube-system"
)

// Landscape is one installation of Trellis on this machine.
type Landscape struct {
	// Name is unique on the machine.
	Name string
	// Root is the repository.
	Root string
	// Extensions are built, and registered with the garden: providers, networks, operating systems and others. New
	// takes all of this repository. The infrastructure is that of localProvider, which has to be among them.
	Extensions []images.Extension
}

var validName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,13}[a-z0-9])?$`)

// New returns the landscape of a name; root is the repository it is built from.
func New(name, root string) (*Landscape, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("--name is %q, and has to be 1 to 15 lower-case letters, digits and hyphens, of which "+
			"the first is a letter, as in `make up NAME=other`", name)
	}
	absolute, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("repository %s: %w", root, err)
	}
	return &Landscape{Name: name, Root: absolute, Extensions: slices.Clone(images.Extensions)}, nil
}

// FindRoot returns the repository: the one that is given, or without one that which holds the working directory.
func FindRoot(given string) (string, error) {
	if given != "" && !isRepository(given) {
		return "", fmt.Errorf("--root is %q, and has to be a clone of Trellis, as in --root ~/trellis", given)
	}
	if given != "" {
		return given, nil
	}
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if isRepository(dir) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in a clone of Trellis; change into one or name it with --root", start)
		}
	}
}

func isRepository(dir string) bool {
	_, errModule := os.Stat(filepath.Join(dir, "go.mod"))
	_, errCharts := os.Stat(filepath.Join(dir, "charts", "charts.go"))
	return errModule == nil && errCharts == nil
}

// stateFolder is the name of the default landscape's state folder; those of others go on with a hyphen and their name.
const stateFolder = ".landscape"

// StateDir holds everything that belongs to the landscape and nothing else.
func (l *Landscape) StateDir() string {
	if l.Name == DefaultName {
		return filepath.Join(l.Root, stateFolder)
	}
	return filepath.Join(l.Root, stateFolder+"-"+l.Name)
}

// CacheDir holds what is built; all landscapes of the repository share it.
func (l *Landscape) CacheDir() string { return filepath.Join(l.Root, ".cache") }

// BinDir holds the programs for people: trellisctl and kubectl.
func (l *Landscape) BinDir() string { return filepath.Join(l.Root, "bin") }

func (l *Landscape) path(elements ...string) string {
	return filepath.Join(append([]string{l.StateDir()}, elements...)...)
}

// RuntimeKubeconfig is the administrator's kubeconfig of the runtime cluster.
func (l *Landscape) RuntimeKubeconfig() string { return l.path("runtime.kubeconfig") }

// GardenKubeconfig is the administrator's kubeconfig of the garden.
func (l *Landscape) GardenKubeconfig() string { return l.path("garden.kubeconfig") }

// TrellisctlConfig tells trellisctl of the landscape's garden.
func (l *Landscape) TrellisctlConfig() string { return l.path("trellisctl.yaml") }

func (l *Landscape) nodeDir(n nodeNumber) string { return l.path(n.folder()) }

// kubernetesDir is /etc/kubernetes of a node.
func (l *Landscape) kubernetesDir(n nodeNumber) string { return l.path(n.folder(), "kubernetes") }

func (l *Landscape) logDir(n nodeNumber) string { return l.path(n.folder(), "log") }

// Log is the log of what `up` did.
func (l *Landscape) Log() string { return l.path("up.log") }

func endpoint(address netip.Addr, port uint16) string {
	return netip.AddrPortFrom(address, port).String()
}
