// Package sshconfig writes what the program ssh needs to reach machines through a bastion: its configuration, and the
// keys that servers have to prove themselves with. Names, addresses and keys come from others and are checked, as a
// line of a configuration may run a program.
package sshconfig

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Host is a server: the bastion, or a machine behind it.
type Host struct {
	// Name is what it is called, and what its keys are kept under.
	Name string
	// Address is an IP address or a host name.
	Address string
	// Port defaults to 22.
	Port uint16
	// Keys are its public keys, as in known_hosts but without a host. A server without any is for the user to judge.
	Keys []string
	// Identities are files with private keys of the user, in the order in which they are tried. Without any, ssh takes
	// what it has.
	Identities []string
}

// Way is through a bastion to machines.
type Way struct {
	// User is who logs in, to all of them.
	User    string
	Bastion Host
	Nodes   []Host
	// KnownHostsFile is where KnownHosts will be.
	KnownHostsFile string
}

// Config is a configuration for `ssh -F`.
func (w Way) Config() (string, error) {
	knownHosts, err := quoted(w.KnownHostsFile)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	write := func(host Host, jump string) error {
		if err := host.check(); err != nil {
			return err
		}
		fmt.Fprintf(&b, "Host %s\n  HostName %s\n  User %s\n  HostKeyAlias %s\n", host.Name, host.Address, w.User,
			host.Name)
		if host.Port != 0 {
			fmt.Fprintf(&b, "  Port %d\n", host.Port)
		}
		if jump != "" {
			fmt.Fprintf(&b, "  ProxyJump %s\n", jump)
		}
		for _, path := range host.Identities {
			file, err := quoted(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "  IdentityFile %s\n  IdentitiesOnly yes\n", file)
		}
		fmt.Fprintf(&b, "  UserKnownHostsFile %s\n  StrictHostKeyChecking %s\n", knownHosts, host.checking())
		return nil
	}
	if err := write(w.Bastion, ""); err != nil {
		return "", fmt.Errorf("bastion: %w", err)
	}
	for _, node := range w.Nodes {
		if err := write(node, w.Bastion.Name); err != nil {
			return "", fmt.Errorf("node: %w", err)
		}
	}
	return b.String(), nil
}

// KnownHosts has the keys of all servers whose keys are known.
func (w Way) KnownHosts() (string, error) {
	var b strings.Builder
	for _, host := range append([]Host{w.Bastion}, w.Nodes...) {
		if err := host.check(); err != nil {
			return "", err
		}
		for _, line := range host.Keys {
			key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
			if err != nil || len(options) > 0 || len(rest) > 0 {
				return "", fmt.Errorf("key of %s: %q is no public key of a host", host.Name, line)
			}
			fmt.Fprintf(&b, "%s %s", host.Name, ssh.MarshalAuthorizedKey(key))
		}
	}
	return b.String(), nil
}

// checking says what ssh does with keys: those that are known have to be right, and for others it asks the user.
func (h Host) checking() string {
	if len(h.Keys) > 0 {
		return "yes"
	}
	return "ask"
}

// check says what is wrong with name or address.
func (h Host) check() error {
	if problems := validation.IsDNS1123Subdomain(h.Name); len(problems) > 0 {
		return fmt.Errorf("name %q: %s", h.Name, problems[0])
	}
	if _, err := netip.ParseAddr(h.Address); err == nil && !strings.Contains(h.Address, "%") {
		return nil
	}
	if problems := validation.IsDNS1123Subdomain(strings.ToLower(h.Address)); len(problems) > 0 {
		return fmt.Errorf("address %q of %s: neither an IP address nor a host name", h.Address, h.Name)
	}
	return nil
}

// quoted is a path as a value of a configuration.
func quoted(path string) (string, error) {
	if strings.ContainsAny(path, "\"\n\r\x00") || strings.Contains(path, "${") {
		return "", errors.New("ssh takes no path with quotation marks, line ends or ${ in it: " + fmt.Sprintf("%q", path))
	}
	return `"` + strings.ReplaceAll(filepath.ToSlash(path), "%", "%%") + `"`, nil
}
