// Package api is the wire contract of the local cloud and a client for it. The server is in package server; the
// Terraform provider, the DNSRecord controller and trellis' landscape are its users.
package api

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/trellis-garden/trellis/pkg/bastionaccess"
	"github.com/trellis-garden/trellis/pkg/etcd/bucket"
)

// Network is an isolated network of machines: a bridge on the node with one IPv4 subnet. Nothing outside may open a
// connection into it.
type Network struct {
	// Name identifies the network in the cloud.
	Name string `json:"name"`
	// Namespace is the namespace of the runtime cluster whose pods are attached to the network.
	Namespace string `json:"namespace"`
	// CIDR is the subnet. An empty value in a request asks the cloud to allocate one.
	CIDR string `json:"cidr,omitempty"`
	// Range is where to allocate the subnet from. Default: the cloud's own pool.
	Range string `json:"range,omitempty"`
	// Gateway is the address of the bridge, the first of the subnet. Set by the cloud.
	Gateway string `json:"gateway,omitempty"`
	// Bridge is the name of the bridge device. Set by the cloud.
	Bridge string `json:"bridge,omitempty"`
	// VolumesDir is the folder of the node for volumes of the machines; it goes with the network. Set by the cloud.
	VolumesDir string `json:"volumesDir,omitempty"`
	// EgressCIDR is the source address that connections out of the network have. Set by the cloud.
	EgressCIDR string `json:"egressCIDR,omitempty"`
}

// Record is a DNS record set of the cloud's zone.
type Record struct {
	// FQDN is the name, without the trailing dot.
	FQDN string `json:"fqdn"`
	// Type is A, AAAA, CNAME or TXT.
	Type string `json:"type"`
	// Values are the addresses, the one target, or the texts.
	Values []string `json:"values"`
	// TTL is in seconds.
	TTL uint32 `json:"ttl"`
}

// Bucket is how a bucket is reached by S3. All is empty where the cloud has no object store, and buckets are folders.
type Bucket = bucket.Access

// Bastion is an SSH server with a public address, through which the machines of one network are reached.
type Bastion struct {
	// Name identifies it in the cloud.
	Name string `json:"name"`
	// Network is the name of the network with the machines.
	Network string `json:"network"`
	// AuthorizedKey is the public key of its one user, a line of authorized_keys.
	AuthorizedKey string `json:"authorizedKey"`
	// HostKey is what it proves itself with: a private key as PEM in OpenSSH's format. The cloud does not tell it.
	HostKey []byte `json:"hostKey,omitempty"`
	// Ingress are the ranges from which it may be reached.
	Ingress []networkingv1.IPBlock `json:"ingress"`
	// Address is its public one; its port is 22. Set by the cloud.
	Address string `json:"address,omitempty"`
}

// Validate reports what is wrong with a request for this bastion.
func (b Bastion) Validate() error {
	if !nameFormat.MatchString(b.Name) {
		return fmt.Errorf("bastion name %q: must be lower-case letters, digits, '-' and '.'", b.Name)
	}
	if _, err := b.Access().PublicKey(); err != nil {
		return fmt.Errorf("bastion %s: %w", b.Name, err)
	}
	if _, err := b.Access().Signer(); err != nil {
		return fmt.Errorf("bastion %s: %w", b.Name, err)
	}
	if len(b.Ingress) == 0 {
		return fmt.Errorf("bastion %s: needs at least one range in ingress", b.Name)
	}
	if _, err := b.Ranges(); err != nil {
		return fmt.Errorf("bastion %s: %w", b.Name, err)
	}
	return nil
}

// Access are the keys of the bastion.
func (b Bastion) Access() bastionaccess.Access {
	return bastionaccess.Access{AuthorizedKey: b.AuthorizedKey, HostKey: b.HostKey}
}

// Ranges are addresses that may connect.
type Ranges []addressRange

type addressRange struct {
	of     netip.Prefix
	except []netip.Prefix
}

// Ranges reads the ingress of the bastion.
func (b Bastion) Ranges() (Ranges, error) {
	ranges := make(Ranges, len(b.Ingress))
	for i, block := range b.Ingress {
		prefix, err := netip.ParsePrefix(block.CIDR)
		if err != nil {
			return nil, fmt.Errorf("ingress[%d]: %w", i, err)
		}
		ranges[i].of = prefix
		for _, text := range block.Except {
			except, err := netip.ParsePrefix(text)
			if err != nil {
				return nil, fmt.Errorf("ingress[%d].except: %w", i, err)
			}
			ranges[i].except = append(ranges[i].except, except)
		}
	}
	return ranges, nil
}

// Contains tells whether an address may connect.
func (r Ranges) Contains(address netip.Addr) bool {
	return slices.ContainsFunc(r, func(one addressRange) bool {
		isOut := slices.ContainsFunc(one.except, func(p netip.Prefix) bool { return p.Contains(address) })
		return one.of.Contains(address) && !isOut
	})
}

// Error is the body of every answer that is not a success.
type Error struct {
	Message string `json:"message"`
}

// nameFormat is that of a DNS label's or a subdomain's characters: safe as a file name.
var nameFormat = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// fqdnFormat also allows wildcards and underscores (TXT records such as _acme-challenge).
var fqdnFormat = regexp.MustCompile(`^(\*\.)?[a-z0-9_]([a-z0-9_.-]{0,250}[a-z0-9])?$`)

// Validate reports what is wrong with a request for this network.
func (n Network) Validate() error {
	if !nameFormat.MatchString(n.Name) {
		return fmt.Errorf("network name %q: must be lower-case letters, digits, '-' and '.'", n.Name)
	}
	if !nameFormat.MatchString(n.Namespace) {
		return fmt.Errorf("network %s: namespace %q: must be the name of a namespace", n.Name, n.Namespace)
	}
	if err := validatePrefix(n.CIDR); err != nil {
		return fmt.Errorf("network %s: cidr %q: %w", n.Name, n.CIDR, err)
	}
	if err := validatePrefix(n.Range); err != nil {
		return fmt.Errorf("network %s: range %q: %w", n.Name, n.Range, err)
	}
	return nil
}

func validatePrefix(text string) error {
	if text == "" {
		return nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return err
	}
	if !prefix.Addr().Is4() || prefix.Bits() < 8 || prefix.Bits() > 29 {
		return errors.New("must be IPv4 with a prefix length from 8 to 29")
	}
	return nil
}

// CanonicalName is the form in which names are stored and compared: lower case, without the trailing dot.
func CanonicalName(fqdn string) string {
	return strings.ToLower(strings.TrimSuffix(fqdn, "."))
}

// Validate reports what is wrong with a request for this record.
func (r Record) Validate() error {
	if !fqdnFormat.MatchString(r.FQDN) {
		return fmt.Errorf("record name %q: must be a domain name in lower case", r.FQDN)
	}
	if len(r.Values) == 0 {
		return fmt.Errorf("record %s: needs at least one value", r.FQDN)
	}
	switch r.Type {
	case "A", "AAAA":
		return r.validateAddresses()
	case "CNAME":
		if len(r.Values) != 1 {
			return fmt.Errorf("record %s: a CNAME has exactly one value, got %d", r.FQDN, len(r.Values))
		}
	case "TXT":
	default:
		return fmt.Errorf("record %s: type %q is not one of A, AAAA, CNAME, TXT", r.FQDN, r.Type)
	}
	return nil
}

func (r Record) validateAddresses() error {
	for _, value := range r.Values {
		addr, err := netip.ParseAddr(value)
		if err != nil {
			return fmt.Errorf("record %s: value %q: %w", r.FQDN, value, err)
		}
		if addr.Is4() != (r.Type == "A") {
			return fmt.Errorf("record %s: value %q does not fit type %s", r.FQDN, value, r.Type)
		}
	}
	return nil
}

// ValidateName reports what is wrong with the name of a bucket or of a directory in one.
func ValidateName(name string) error {
	if !nameFormat.MatchString(name) {
		return fmt.Errorf("name %q: must be lower-case letters, digits, '-' and '.'", name)
	}
	return nil
}
