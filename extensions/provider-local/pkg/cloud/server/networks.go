package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sort"
	"sync"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cni"
)

// errConflict marks requests that contradict what is there.
var errConflict = errors.New("conflict")

// Host is what networks need of the node they are on.
type Host interface {
	// EnsureBridge creates the bridge with the gateway's address, or corrects it.
	EnsureBridge(name string, gateway netip.Prefix) error
	// RemoveBridge removes the bridge; one that is not there is no error.
	RemoveBridge(name string) error
	// ApplyFirewall makes the rules for these networks the only ones of the cloud.
	ApplyFirewall(ctx context.Context, networks []api.Network) error

	BastionHost
}

// networks owns the machines' networks. What is asked for is written down first and made true afterwards; restore
// makes all of it true again, so a process may be killed at any point.
type networks struct {
	mu     sync.Mutex
	host   Host
	store  store[api.Network]
	cniDir string
	// volumesDir holds one folder per network.
	volumesDir string
	pool       netip.Prefix
	// reserved are networks of the node itself that no subnet may overlap.
	reserved []netip.Prefix
	egress   netip.Addr
	byName   map[string]api.Network
}

func newNetworks(stateDir string, pool netip.Prefix, reserved []netip.Prefix, egress netip.Addr, host Host) *networks {
	return &networks{
		host:       host,
		store:      store[api.Network]{dir: filepath.Join(stateDir, "state", "networks")},
		volumesDir: filepath.Join(stateDir, "machine-volumes"),
		cniDir:     filepath.Join(stateDir, "networks"),
		pool:       pool,
		reserved:   reserved,
		egress:     egress,
		byName:     map[string]api.Network{},
	}
}

// restore loads what was written down and brings the node in line with it.
func (n *networks) restore(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	loaded, err := n.store.load()
	if err != nil {
		return fmt.Errorf("loading the networks: %w", err)
	}
	n.byName = loaded
	if err := n.host.ApplyFirewall(ctx, n.sorted()); err != nil {
		return err
	}
	for _, network := range n.sorted() {
		if err := n.realize(network); err != nil {
			return err
		}
	}
	return nil
}

func (n *networks) get(name string) (api.Network, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	network, ok := n.byName[name]
	return network, ok
}

// put creates the network, or brings an existing one in line again. The subnet of a network does not change.
func (n *networks) put(ctx context.Context, wanted api.Network) (api.Network, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	network, err := n.plan(wanted)
	if err != nil {
		return api.Network{}, err
	}
	if err := n.store.put(network.Name, network); err != nil {
		return api.Network{}, fmt.Errorf("network %s: %w", network.Name, err)
	}
	n.byName[network.Name] = network
	// The rules come before the bridge, so that there is no moment in which the network is open.
	if err := n.host.ApplyFirewall(ctx, n.sorted()); err != nil {
		return api.Network{}, err
	}
	return network, n.realize(network)
}

func (n *networks) remove(ctx context.Context, name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	network, ok := n.byName[name]
	if !ok {
		return nil
	}
	if err := removeFile(n.cniFile(network)); err != nil {
		return fmt.Errorf("network %s: %w", name, err)
	}
	if err := n.host.RemoveBridge(network.Bridge); err != nil {
		return fmt.Errorf("network %s: %w", name, err)
	}
	if err := os.RemoveAll(network.VolumesDir); err != nil {
		return fmt.Errorf("network %s: removing its volumes: %w", name, err)
	}
	if err := n.store.remove(name); err != nil {
		return fmt.Errorf("network %s: %w", name, err)
	}
	delete(n.byName, name)
	return n.host.ApplyFirewall(ctx, n.sorted())
}

// realize makes bridge and CNI file of a network that is written down.
func (n *networks) realize(network api.Network) error {
	subnet, err := netip.ParsePrefix(network.CIDR)
	if err != nil {
		return fmt.Errorf("network %s: %w", network.Name, err)
	}
	gateway := netip.PrefixFrom(gatewayOf(subnet), subnet.Bits())
	if err := n.host.EnsureBridge(network.Bridge, gateway); err != nil {
		return fmt.Errorf("network %s: %w", network.Name, err)
	}
	if err := os.MkdirAll(network.VolumesDir, 0o755); err != nil {
		return fmt.Errorf("network %s: %w", network.Name, err)
	}
	file := cni.NetworkFile{Name: network.Name, Bridge: network.Bridge, Subnet: network.CIDR, Gateway: network.Gateway}
	if err := writeJSON(n.cniFile(network), file); err != nil {
		return fmt.Errorf("network %s: %w", network.Name, err)
	}
	return nil
}

func (n *networks) cniFile(network api.Network) string {
	return filepath.Join(n.cniDir, network.Namespace+".json")
}

func (n *networks) sorted() []api.Network {
	list := make([]api.Network, 0, len(n.byName))
	for _, network := range n.byName {
		list = append(list, network)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// plan completes a request: the subnet that the network has already, the wanted one, or a free one.
func (n *networks) plan(wanted api.Network) (api.Network, error) {
	if err := wanted.Validate(); err != nil {
		return api.Network{}, fmt.Errorf("%w: %w", errInvalid, err)
	}
	current, exists := n.byName[wanted.Name]
	if exists && current.Namespace != wanted.Namespace {
		return api.Network{}, fmt.Errorf("%w: network %s belongs to namespace %s; delete it before attaching another",
			errConflict, wanted.Name, current.Namespace)
	}
	subnet, err := n.subnetFor(wanted, current)
	if err != nil {
		return api.Network{}, err
	}
	return api.Network{
		Name:       wanted.Name,
		Namespace:  wanted.Namespace,
		CIDR:       subnet.String(),
		Range:      wanted.Range,
		Gateway:    gatewayOf(subnet).String(),
		Bridge:     bridgeName(wanted.Name),
		VolumesDir: filepath.Join(n.volumesDir, wanted.Name),
		EgressCIDR: netip.PrefixFrom(n.egress, n.egress.BitLen()).String(),
	}, nil
}

func (n *networks) subnetFor(wanted, current api.Network) (netip.Prefix, error) {
	others := append([]netip.Prefix(nil), n.reserved...)
	for _, other := range n.byName {
		if other.Name == wanted.Name {
			continue
		}
		if other.Namespace == wanted.Namespace {
			return netip.Prefix{}, fmt.Errorf("%w: namespace %s is attached to network %s already", errConflict,
				wanted.Namespace, other.Name)
		}
		prefix, err := netip.ParsePrefix(other.CIDR)
		if err != nil {
			return netip.Prefix{}, fmt.Errorf("network %s: %w", other.Name, err)
		}
		others = append(others, prefix)
	}
	switch {
	case wanted.CIDR == "" && current.CIDR != "":
		return netip.ParsePrefix(current.CIDR)
	case wanted.CIDR == "" && wanted.Range != "":
		pool := netip.MustParsePrefix(wanted.Range)
		return allocate(pool, max(subnetBits, pool.Bits()), others)
	case wanted.CIDR == "":
		return allocate(n.pool, subnetBits, others)
	}
	subnet := netip.MustParsePrefix(wanted.CIDR).Masked()
	if current.CIDR != "" && current.CIDR != subnet.String() {
		return netip.Prefix{}, fmt.Errorf("%w: network %s has %s; its subnet cannot change to %s", errConflict,
			wanted.Name, current.CIDR, subnet)
	}
	for _, other := range others {
		if other.Overlaps(subnet) {
			return netip.Prefix{}, fmt.Errorf("%w: %s overlaps %s, which is in use on this node; leave the subnet "+
				"empty to have one allocated", errConflict, subnet, other)
		}
	}
	return subnet, nil
}

// subnetBits is the size of allocated subnets: room for 253 machines.
const subnetBits = 24

// allocate returns the first subnet of the pool that overlaps none of the taken ones.
func allocate(pool netip.Prefix, bits int, taken []netip.Prefix) (netip.Prefix, error) {
	for addr := pool.Masked().Addr(); pool.Contains(addr); {
		candidate := netip.PrefixFrom(addr, bits)
		if !overlapsAny(candidate, taken) {
			return candidate, nil
		}
		next, ok := nextSubnet(candidate)
		if !ok {
			break
		}
		addr = next
	}
	return netip.Prefix{}, fmt.Errorf("%w: no free /%d is left in %s", errConflict, bits, pool)
}

func overlapsAny(candidate netip.Prefix, taken []netip.Prefix) bool {
	for _, prefix := range taken {
		if prefix.Overlaps(candidate) {
			return true
		}
	}
	return false
}

// nextSubnet is the address after the last one of an IPv4 subnet.
func nextSubnet(prefix netip.Prefix) (netip.Addr, bool) {
	bytes := prefix.Addr().As4()
	value := uint64(bytes[0])<<24 | uint64(bytes[1])<<16 | uint64(bytes[2])<<8 | uint64(bytes[3])
	value += 1 << (32 - prefix.Bits())
	if value > 0xffffffff {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

func gatewayOf(subnet netip.Prefix) netip.Addr {
	return subnet.Masked().Addr().Next()
}

// bridgeName fits into the 15 characters that Linux allows and is stable for a network's name.
func bridgeName(network string) string {
	sum := sha256.Sum256([]byte(network))
	return "lc" + hex.EncodeToString(sum[:])[:10]
}
