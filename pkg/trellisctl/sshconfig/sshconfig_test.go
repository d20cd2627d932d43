package sshconfig

import (
	"strings"
	"testing"
)

const (
	firstKey  = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBjIl+ho6NDM5XvXNcbEKVxe0EDUTCqZuK4Vwh2cuPnP"
	secondKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEaPgNTmy8tbqNHBuVsFnFPIsk9gsjGeb4AW7ofI5Sq5"
)

func aWay() Way {
	return Way{
		User: "gardener", KnownHostsFile: "/tmp/a b/known_hosts",
		Bastion: Host{
			Name: "cli-1", Address: "127.36.5.1", Port: 22022, Keys: []string{firstKey}, Identities: []string{"/tmp/bastion"},
		},
		Nodes: []Host{
			{
				Name: "node-1", Address: "10.180.0.5", Keys: []string{secondKey + " root@node-1"},
				Identities: []string{"/tmp/100%", "/tmp/old"},
			},
			{Name: "node-2", Address: "fd00::5"},
		},
	}
}

func TestConfig(t *testing.T) {
	config, err := aWay().Config()
	if err != nil {
		t.Fatal(err)
	}
	want := `Host cli-1
  HostName 127.36.5.1
  User gardener
  HostKeyAlias cli-1
  Port 22022
  IdentityFile "/tmp/bastion"
  IdentitiesOnly yes
  UserKnownHostsFile "/tmp/a b/known_hosts"
  StrictHostKeyChecking yes
Host node-1
  HostName 10.180.0.5
  User gardener
  HostKeyAlias node-1
  ProxyJump cli-1
  IdentityFile "/tmp/100%%"
  IdentitiesOnly yes
  IdentityFile "/tmp/old"
  IdentitiesOnly yes
  UserKnownHostsFile "/tmp/a b/known_hosts"
  StrictHostKeyChecking yes
Host node-2
  HostName fd00::5
  User gardener
  HostKeyAlias node-2
  ProxyJump cli-1
  UserKnownHostsFile "/tmp/a b/known_hosts"
  StrictHostKeyChecking ask
`
	if config != want {
		t.Errorf("got\n%s", config)
	}
	hosts, err := aWay().KnownHosts()
	if want := "cli-1 " + firstKey + "\nnode-1 " + secondKey + "\n"; err != nil || hosts != want {
		t.Errorf("got\n%s, %v", hosts, err)
	}
}

// What others say of their machines runs no program of the user, and is no key of another host.
func TestAttackLinesInTheConfiguration(t *testing.T) {
	const line = "\n  ProxyCommand touch /tmp/owned"
	for name, change := range map[string]func(*Way){
		"name of a node":         func(w *Way) { w.Nodes[0].Name += line },
		"pattern for all":        func(w *Way) { w.Nodes[0].Name = "*" },
		"address of a node":      func(w *Way) { w.Nodes[0].Address += line },
		"address with an option": func(w *Way) { w.Nodes[0].Address = "-oProxyCommand=x" },
		"address with a token":   func(w *Way) { w.Nodes[0].Address = "fe80::1%h" },
		"address of the bastion": func(w *Way) { w.Bastion.Address = "host " + line },
		"file of a key":          func(w *Way) { w.Nodes[0].Identities[0] += `"` + line },
		"variable in a path":     func(w *Way) { w.KnownHostsFile = "${HOME}/x" },
	} {
		way := aWay()
		change(&way)
		if config, err := way.Config(); err == nil {
			t.Errorf("%s: got\n%s", name, config)
		}
	}
	for name, key := range map[string]string{
		"no key": "x", "two": firstKey + "\n" + secondKey, "of all hosts": "* " + firstKey,
		"an authority": "@cert-authority * " + firstKey, "with options": `command="x" ` + firstKey,
	} {
		way := aWay()
		way.Nodes[0].Keys = []string{key}
		if hosts, err := way.KnownHosts(); err == nil {
			t.Errorf("%s: got\n%s", name, hosts)
		}
	}
}

// Whatever a node is called, and wherever it is: a line of the configuration is one of those that are meant.
func FuzzConfig(f *testing.F) {
	f.Add("node-1", "10.180.0.5", firstKey, "/tmp/key")
	f.Add("a\nProxyCommand x", "::1%eth0", "x", "a\"b")
	known := []string{
		"Host ", "  HostName ", "  User gardener", "  HostKeyAlias ", "  ProxyJump cli-1", "  IdentityFile \"",
		"  IdentitiesOnly yes", "  UserKnownHostsFile \"", "  StrictHostKeyChecking ", "  Port 22022",
	}
	f.Fuzz(func(t *testing.T, name, address, key, path string) {
		way := aWay()
		way.Nodes = []Host{{Name: name, Address: address, Keys: []string{key}, Identities: []string{path}}}
		if hosts, err := way.KnownHosts(); err == nil && strings.Count(hosts, "\n") != 2 {
			t.Errorf("got\n%s", hosts)
		}
		config, err := way.Config()
		if err != nil {
			return
		}
		if strings.Count(config, "\n") != 18 {
			t.Errorf("got\n%s", config)
		}
		for line := range strings.Lines(config) {
			isKnown := false
			for _, begin := range known {
				isKnown = isKnown || strings.HasPrefix(line, begin)
			}
			if !isKnown {
				t.Errorf("line %q", line)
			}
		}
	})
}
