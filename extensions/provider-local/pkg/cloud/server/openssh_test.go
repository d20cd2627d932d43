package server

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/trellis-garden/trellis/pkg/bastionaccess"
	"github.com/trellis-garden/trellis/pkg/trellisctl/sshconfig"
)

// sshMachine is an SSH server that lets one key in and repeats the command that it is to run. It returns its address
// and its public key.
func sshMachine(t *testing.T, authorized ssh.PublicKey) (address, hostKey string) {
	t.Helper()
	host, _ := newUser(t)
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if meta.User() != bastionaccess.User || string(key.Marshal()) != string(authorized.Marshal()) {
				return nil, fmt.Errorf("%s may not log in", meta.User())
			}
			return nil, nil
		},
	}
	config.AddHostKey(host.signer)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go serveMachine(connection, config)
		}
	}()
	return listener.Addr().String(), strings.TrimSpace(host.line)
}

func serveMachine(connection net.Conn, config *ssh.ServerConfig) {
	_, channels, requests, err := ssh.NewServerConn(connection, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for asked := range channels {
		channel, requests, err := asked.Accept()
		if err != nil {
			return
		}
		for request := range requests {
			isCommand := request.Type == "exec"
			_ = request.Reply(isCommand, nil)
			if !isCommand {
				continue
			}
			var command struct{ Line string }
			_ = ssh.Unmarshal(request.Payload, &command)
			fmt.Fprintf(channel, "ran %s", command.Line)
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{0}))
			channel.Close()
			break
		}
	}
}

func writeKey(t *testing.T, path string, key []byte) string {
	t.Helper()
	if err := os.WriteFile(path, key, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// throughABastion has a bastion in network a, and a machine behind it at 10.180.0.7.
func throughABastion(t *testing.T) sshconfig.Way {
	t.Helper()
	dir := t.TempDir()
	_, host, client := withNetworks(t, t.TempDir())
	someone, key := newUser(t)
	wanted, _ := bastionFor(t, "a.cli", "a")
	wanted.AuthorizedKey = someone.line
	made := putBastion(t, client, wanted)
	owner, machineKey := newUser(t)
	machine, hostKey := sshMachine(t, owner.signer.PublicKey())
	host.mu.Lock()
	host.machines[netip.MustParseAddrPort("10.180.0.7:22")] = machine
	at := netip.MustParseAddrPort(host.listeners[netip.MustParseAddr(made.Address)].Addr().String())
	host.mu.Unlock()
	keys, err := wanted.Access().HostKeys()
	if err != nil {
		t.Fatal(err)
	}
	return sshconfig.Way{
		User: bastionaccess.User, KnownHostsFile: filepath.Join(dir, "known_hosts"),
		Bastion: sshconfig.Host{
			Name: "cli", Address: at.Addr().String(), Port: at.Port(), Keys: keys,
			Identities: []string{writeKey(t, filepath.Join(dir, "bastion-key"), key)},
		},
		Nodes: []sshconfig.Host{{
			Name: "node-1", Address: "10.180.0.7", Keys: []string{hostKey},
			Identities: []string{writeKey(t, filepath.Join(dir, "node-key"), machineKey)},
		}},
	}
}

// logIn runs a command on node-1 with the program ssh.
func logIn(t *testing.T, way sshconfig.Way) (string, error) {
	t.Helper()
	config, err := way.Config()
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := way.KnownHosts()
	if err != nil {
		t.Fatal(err)
	}
	writeKey(t, way.KnownHostsFile, []byte(hosts))
	file := writeKey(t, filepath.Join(filepath.Dir(way.KnownHostsFile), "config"), []byte(config))
	out, err := exec.CommandContext(t.Context(), "ssh", "-F", file, "-o", "BatchMode=yes", "node-1", "--", "hostname",
		"-f").CombinedOutput()
	return string(out), err
}

// OpenSSH's client gets through a bastion with the configuration that trellisctl writes, and only to servers that prove
// who they are.
func TestOpenSSHThroughABastion(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("there is no program ssh here")
	}
	way := throughABastion(t)
	if out, err := logIn(t, way); err != nil || !strings.HasSuffix(out, "ran hostname -f") {
		t.Errorf("got %q, %v", out, err)
	}
	other, otherKey := newUser(t)
	for name, change := range map[string]func(*sshconfig.Way){
		"another bastion": func(w *sshconfig.Way) { w.Bastion.Keys = []string{strings.TrimSpace(other.line)} },
		"another machine": func(w *sshconfig.Way) { w.Nodes[0].Keys = []string{strings.TrimSpace(other.line)} },
		"unknown machine": func(w *sshconfig.Way) { w.Nodes[0].Keys = nil },
		"another key for the machine": func(w *sshconfig.Way) {
			w.Nodes[0].Identities = []string{writeKey(t, filepath.Join(t.TempDir(), "key"), otherKey)}
		},
		"a machine that is none of the shoot": func(w *sshconfig.Way) { w.Nodes[0].Address = "10.180.1.7" },
	} {
		changed := throughABastion(t)
		change(&changed)
		if out, err := logIn(t, changed); err == nil {
			t.Errorf("%s: got %q", name, out)
		}
	}
}
