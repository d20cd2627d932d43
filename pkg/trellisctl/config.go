// Package trellisctl is the command line client of a garden: it lists projects, shoots and seeds, remembers a target,
// and hands out short-lived kubeconfigs. It talks to the garden's API only, and to a seed's for what runs there.
package trellisctl

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-garden/trellis/pkg/strictyaml"
)

// ConfigEnv names the environment variable with the path of the configuration.
const ConfigEnv = "TRELLISCTL_CONFIG"

// Config lists the gardens that the user knows.
type Config struct {
	Gardens []Garden `json:"gardens"`
	// path is where the configuration was read.
	path string
}

// Garden is one garden.
type Garden struct {
	// Name is what the user calls it.
	Name string `json:"name"`
	// Identity is the cluster identity of the garden (ConfigMap kube-system/cluster-identity).
	Identity string `json:"identity,omitempty"`
	// Kubeconfig is the path of the user's kubeconfig for the garden's API.
	Kubeconfig string `json:"kubeconfig"`
	// Context overrides the kubeconfig's current context.
	Context string `json:"context,omitempty"`
	// Endpoints say where domains are reached that no DNS server of the user's machine knows.
	Endpoints []Endpoint `json:"endpoints,omitempty"`
	// Patterns are regular expressions for `trellisctl target PATTERN`, with groups named project, namespace, shoot or
	// seed. Without any there is one for the names that shoots have in seeds.
	Patterns []string `json:"patterns,omitempty"`
	// Bastions say how bastions of the garden's shoots are reached where the user's machine does not reach their
	// addresses.
	Bastions *BastionRoute `json:"bastions,omitempty"`
	// addressDir remembers which host has which address of an endpoint; see addressFor.
	addressDir string
}

// Endpoint is the address at which every host of a domain is reached by TLS SNI.
type Endpoint struct {
	Domain string `json:"domain"`
	// Address is host:port.
	Address string `json:"address"`
	// Addresses is how many addresses, from Address on, lead to the same place; 0 is one. With more, hosts get
	// different ones after the first, and keep them: kubectl keeps what it learnt of an API by host and port, and would
	// take the APIs of all clusters for one.
	Addresses int `json:"addresses,omitempty"`
}

// BastionRoute is the way to bastions whose addresses the user's machine does not reach.
type BastionRoute struct {
	// Range has the addresses of the bastions.
	Range string `json:"range"`
	// Address (IP:port) leads to the first one of Range, the address after it to the second one, and so on.
	Address string `json:"address"`
	// CIDRs are the ranges from which connections come that way: what --cidr is without the flag.
	CIDRs []string `json:"cidrs,omitempty"`
}

// check says what is wrong, and in which field.
func (r *BastionRoute) check() (field string, err error) {
	if r == nil {
		return "", nil
	}
	within, err := netip.ParsePrefix(r.Range)
	if err != nil {
		return "range", err
	}
	first, err := netip.ParseAddrPort(r.Address)
	if err != nil {
		return "address", err
	}
	more := new(big.Int).Lsh(big.NewInt(1), uint(within.Addr().BitLen()-within.Bits()))
	if _, exists := after(first.Addr(), more.Sub(more, big.NewInt(1))); !exists {
		return "address", fmt.Errorf("from %s on there are fewer addresses than range %s has", first.Addr(), within)
	}
	for _, text := range r.CIDRs {
		if _, err := netip.ParsePrefix(text); err != nil {
			return "cidrs", err
		}
	}
	return "", nil
}

// to is where a bastion is reached; port 22 of its own address unless the range has it.
func (r *BastionRoute) to(host string) (address string, port uint16) {
	bastion, err := netip.ParseAddr(host)
	if r == nil || err != nil {
		return host, 0
	}
	within, errRange := netip.ParsePrefix(r.Range)
	first, errAddress := netip.ParseAddrPort(r.Address)
	if errRange != nil || errAddress != nil || !within.Contains(bastion) {
		return host, 0
	}
	count := numberOf(bastion)
	reached, exists := after(first.Addr(), count.Sub(count, numberOf(within.Masked().Addr())))
	if !exists {
		return host, 0
	}
	return reached.String(), first.Port()
}

func numberOf(address netip.Addr) *big.Int { return new(big.Int).SetBytes(address.AsSlice()) }

// after is the address that comes so many after another; false where there are not so many.
func after(address netip.Addr, count *big.Int) (netip.Addr, bool) {
	sum := numberOf(address)
	if sum.Add(sum, count).BitLen() > address.BitLen() {
		return netip.Addr{}, false
	}
	result, ok := netip.AddrFromSlice(sum.FillBytes(make([]byte, address.BitLen()/8)))
	return result.WithZone(address.Zone()), ok
}

// check says what is wrong with an endpoint, and in which field.
func (e Endpoint) check() (field string, err error) {
	host, _, err := net.SplitHostPort(e.Address)
	switch {
	case err != nil:
		return "address", err
	case e.Addresses < 0 || e.Addresses > maxAddresses:
		return "addresses", fmt.Errorf("%d is not between 0 and %d", e.Addresses, maxAddresses)
	case e.Addresses > 1 && net.ParseIP(host) == nil:
		return "address", fmt.Errorf("%q is no IP address, from which one could count", host)
	}
	return "", nil
}

// of returns the addresses that a host may have, in the order in which it takes them: from the one that its hash says.
func (e Endpoint) of(host string) []string {
	first, err := netip.ParseAddrPort(e.Address)
	if e.Addresses < 2 || err != nil {
		return []string{e.Address}
	}
	addresses := make([]string, e.Addresses-1)
	address := first.Addr()
	for i := range addresses {
		address = address.Next()
		addresses[i] = netip.AddrPortFrom(address, first.Port()).String()
	}
	hash := fnv.New32a()
	hash.Write([]byte(host))
	start := hash.Sum32() % uint32(len(addresses))
	return slices.Concat(addresses[start:], addresses[:start])
}

// maxAddresses bounds Endpoint.Addresses.
const maxAddresses = 256

// configPaths lists where a configuration is looked for, first hit wins: the working directory and its parents (a
// clone with a running landscape), the folder above the program, the home directory.
func configPaths() []string {
	const local = ".landscape/trellisctl.yaml"
	var paths []string
	if dir, err := os.Getwd(); err == nil {
		for ; ; dir = filepath.Dir(dir) {
			paths = append(paths, filepath.Join(dir, local))
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	if executable, err := os.Executable(); err == nil {
		paths = append(paths, filepath.Join(filepath.Dir(filepath.Dir(executable)), local))
	}
	if home, err := os.UserHomeDir(); err == nil {
		paths = append(paths, filepath.Join(home, ".garden", "trellisctl.yaml"))
	}
	return paths
}

// LoadConfig reads the configuration at path, or at TRELLISCTL_CONFIG, or at the first default place that has one.
func LoadConfig(path string) (*Config, error) {
	if path, namedBy := namedConfig(path); path != "" {
		config, err := readConfig(path)
		return config, explainConfig(err, path, namedBy)
	}
	for _, candidate := range configPaths() {
		config, err := readConfig(candidate)
		if !errors.Is(err, fs.ErrNotExist) {
			return config, err
		}
	}
	return nil, fmt.Errorf("no garden is configured: run `make up` for a local landscape, or write "+
		"~/.garden/trellisctl.yaml "+
		"(gardens: [{name, kubeconfig}]), or name a file with --config or %s", ConfigEnv)
}

// namedConfig is the file that somebody has named, and by what; empty where nobody has.
func namedConfig(flag string) (path, namedBy string) {
	if flag != "" {
		return flag, "--config"
	}
	return os.Getenv(ConfigEnv), "the environment variable " + ConfigEnv
}

// explainConfig says who named a file that cannot be read, and what to do.
func explainConfig(err error, path, namedBy string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the configuration %s does not exist, which %s names: correct that or leave it out, or "+
			"write the file by `trellisctl config set-garden IDENTITY --kubeconfig FILE --config %s`", path, namedBy,
			path)
	}
	if err != nil {
		return fmt.Errorf("%w (the configuration that %s names)", err, namedBy)
	}
	return nil
}

func readConfig(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	config := &Config{path: path}
	if err := strictyaml.Unmarshal(data, config, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i, garden := range config.Gardens {
		config.Gardens[i].addressDir = strings.TrimSuffix(path, filepath.Ext(path)) + ".addresses"
		if garden.Name == "" || garden.Kubeconfig == "" {
			return nil, fmt.Errorf("%s: gardens[%d]: name and kubeconfig must be set", path, i)
		}
		for j, endpoint := range garden.Endpoints {
			if field, err := endpoint.check(); err != nil {
				return nil, fmt.Errorf("%s: gardens[%d].endpoints[%d].%s: %w", path, i, j, field, err)
			}
		}
		if field, err := garden.Bastions.check(); err != nil {
			return nil, fmt.Errorf("%s: gardens[%d].bastions.%s: %w", path, i, field, err)
		}
		for j, pattern := range garden.Patterns {
			if err := checkPattern(pattern); err != nil {
				return nil, fmt.Errorf("%s: gardens[%d].patterns[%d]: %w", path, i, j, err)
			}
		}
	}
	return config, nil
}

// Garden finds a garden by name or identity; an empty name means the only one.
func (c *Config) Garden(name string) (*Garden, error) {
	var names []string
	for i := range c.Gardens {
		garden := &c.Gardens[i]
		if garden.Name == name || (name != "" && garden.Identity == name) || (name == "" && len(c.Gardens) == 1) {
			return garden, nil
		}
		names = append(names, garden.Name)
	}
	if name == "" {
		return nil, fmt.Errorf("several gardens are configured: choose one of %s with --garden or `trellisctl "+
			"target --garden NAME`", strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("garden %q is not in %s; known are: %s", name, c.path, strings.Join(names, ", "))
}

// Route points every cluster of the kubeconfig whose host lies in one of the garden's endpoint domains at the address
// of that domain; the host becomes the TLS server name.
func (g *Garden) Route(kubeconfig *clientcmdapi.Config) error {
	for name, cluster := range kubeconfig.Clusters {
		server, err := url.Parse(cluster.Server)
		if err != nil {
			return fmt.Errorf("cluster %s: %w", name, err)
		}
		address, ok := g.addressOf(server.Hostname())
		if !ok {
			continue
		}
		cluster.TLSServerName = server.Hostname()
		server.Host = address
		cluster.Server = server.String()
	}
	return nil
}

func (g *Garden) addressOf(host string) (string, bool) {
	for _, endpoint := range g.Endpoints {
		if host == endpoint.Domain || strings.HasSuffix(host, "."+endpoint.Domain) {
			addresses := endpoint.of(host)
			if len(addresses) == 1 || g.addressDir == "" {
				return addresses[0], true
			}
			return addressFor(g.addressDir, host, addresses), true
		}
	}
	return "", false
}
