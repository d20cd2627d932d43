package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/pkg/bastionaccess"
)

// bastionsHost has the addresses of bastions as ports of the loopback interface, and machines that say which they are.
type bastionsHost struct {
	mu *sync.Mutex
	// listeners are those of addresses.
	listeners map[netip.Addr]net.Listener
	// addresses are those that the node has.
	addresses map[netip.Addr]bool
	dialed    *[]string
	// machines are addresses of servers that stand for machines; others say which they are, and end.
	machines map[netip.AddrPort]string
	// busy is how often listening fails.
	busy *int
}

func newBastionsHost() bastionsHost {
	return bastionsHost{
		mu: &sync.Mutex{}, listeners: map[netip.Addr]net.Listener{}, addresses: map[netip.Addr]bool{},
		dialed: new([]string), machines: map[netip.AddrPort]string{}, busy: new(int),
	}
}

func (h bastionsHost) ListenBastion(ctx context.Context, address netip.Addr) (net.Listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.addresses[address] = true
	if *h.busy > 0 {
		*h.busy--
		return nil, errors.New("address in use")
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	h.listeners[address] = listener
	return listener, err
}

func (h bastionsHost) RemoveAddress(address netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, address)
	delete(h.addresses, address)
	return nil
}

func (h bastionsHost) DialMachine(ctx context.Context, bridge string, machine netip.AddrPort) (net.Conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*h.dialed = append(*h.dialed, bridge+" "+machine.String())
	if server, exists := h.machines[machine]; exists {
		return (&net.Dialer{}).DialContext(ctx, "tcp", server)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		defer listener.Close()
		if connection, err := listener.Accept(); err == nil {
			fmt.Fprintf(connection, "machine %s", machine)
			connection.Close()
		}
	}()
	return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
}

// user is who uses a bastion, with a key.
type user struct {
	signer ssh.Signer
	line   string
}

func newUser(t *testing.T) (user, []byte) {
	t.Helper()
	access, err := bastionaccess.New("")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := access.Signer()
	if err != nil {
		t.Fatal(err)
	}
	return user{signer, string(ssh.MarshalAuthorizedKey(signer.PublicKey()))}, access.HostKey
}

// login logs in to the bastion at an address.
func (u user) login(host *recordingHost, address string) (*ssh.Client, error) {
	host.mu.Lock()
	listener := host.listeners[netip.MustParseAddr(address)]
	host.mu.Unlock()
	if listener == nil {
		return nil, fmt.Errorf("nobody listens at %s", address)
	}
	return ssh.Dial("tcp", listener.Addr().String(), &ssh.ClientConfig{
		User: bastionaccess.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(u.signer)},
		HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: 10 * time.Second,
	})
}

func bastionFor(t *testing.T, name, network string) (api.Bastion, user) {
	t.Helper()
	someone, _ := newUser(t)
	_, hostKey := newUser(t)
	return api.Bastion{
		Name: name, Network: network, AuthorizedKey: someone.line, HostKey: hostKey,
		Ingress: []networkingv1.IPBlock{{CIDR: "127.0.0.0/8"}},
	}, someone
}

// withNetworks makes networks a (10.180.0.0/24) and b (10.180.1.0/24).
func withNetworks(t *testing.T, dir string) (*Server, *recordingHost, *api.Client) {
	t.Helper()
	server, host, client := newCloud(t, dir)
	for _, name := range []string{"a", "b"} {
		if _, err := client.PutNetwork(t.Context(), api.Network{Name: name, Namespace: "infra-" + name}); err != nil {
			t.Fatal(err)
		}
	}
	return server, host, client
}

func putBastion(t *testing.T, client *api.Client, bastion api.Bastion) api.Bastion {
	t.Helper()
	made, err := client.PutBastion(t.Context(), bastion)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestBastionLeadsToMachines(t *testing.T) {
	dir := t.TempDir()
	server, host, client := withNetworks(t, dir)
	wanted, someone := bastionFor(t, "a.cli", "a")
	made := putBastion(t, client, wanted)
	if made.Address != "172.18.0.208" || made.HostKey != nil {
		t.Fatalf("made %+v", made)
	}
	reaches := func(host *recordingHost) {
		t.Helper()
		login, err := someone.login(host, made.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer login.Close()
		machine, err := login.Dial("tcp", "10.180.0.7:22")
		if err != nil {
			t.Fatal(err)
		}
		if said, err := io.ReadAll(machine); err != nil || string(said) != "machine 10.180.0.7:22" {
			t.Errorf("said %q, %v", said, err)
		}
	}
	reaches(host)
	if want := bridgeName("a") + " 10.180.0.7:22"; (*host.dialed)[0] != want {
		t.Errorf("dialed %q, want %q", *host.dialed, want)
	}
	if info, err := os.Stat(filepath.Join(dir, "state", "bastions", "a.cli.json")); err != nil ||
		info.Mode().Perm() != 0o600 {
		t.Errorf("the file with its key: %v, %v", info, err)
	}

	server.bastions.close()
	_, revived, again := newCloud(t, dir)
	reaches(revived)
	if same := putBastion(t, again, wanted); same.Address != made.Address {
		t.Errorf("after a restart it is at %s", same.Address)
	}
}

// Whoever may log in to a bastion gets to SSH of the machines in its network: not to those of others, nor to the node
// and what runs on it.
func TestAttackOtherShootsThroughABastion(t *testing.T) {
	_, host, client := withNetworks(t, t.TempDir())
	wanted, someone := bastionFor(t, "a.cli", "a")
	login, err := someone.login(host, putBastion(t, client, wanted).Address)
	if err != nil {
		t.Fatal(err)
	}
	defer login.Close()
	for what, address := range map[string]string{
		"a machine of another shoot": "10.180.1.7:22", "the node": "10.180.0.1:22", "the node itself": "172.18.0.2:22",
		"the runtime's API": "172.18.0.2:6443", "a pod of the seed": "10.1.0.5:22", "a Service": "10.2.0.1:443",
		"the kubelet of a machine": "10.180.0.7:10250", "the cloud": "127.0.0.1:8090", "all machines": "10.180.0.255:22",
		"the network": "10.180.0.0:22", "another bastion": "172.18.0.209:22",
	} {
		if machine, err := login.Dial("tcp", address); err == nil {
			machine.Close()
			t.Errorf("%s (%s) is reached", what, address)
		}
	}
	if len(*host.dialed) > 0 {
		t.Errorf("dialed %q", *host.dialed)
	}
}

// The bastion of one shoot is none for the user of another.
func TestAttackAnothersBastion(t *testing.T) {
	_, host, client := withNetworks(t, t.TempDir())
	first, owner := bastionFor(t, "a.cli", "a")
	second, other := bastionFor(t, "b.cli", "b")
	address := putBastion(t, client, first).Address
	if putBastion(t, client, second).Address == address {
		t.Error("two bastions have one address")
	}
	if login, err := other.login(host, address); err == nil {
		login.Close()
		t.Error("the user of another bastion is let in")
	}
	elsewhere := first
	elsewhere.Ingress = []networkingv1.IPBlock{{CIDR: "0.0.0.0/0", Except: []string{"127.0.0.0/8"}}}
	putBastion(t, client, elsewhere)
	if login, err := owner.login(host, address); err == nil {
		login.Close()
		t.Error("an address is let in that was excepted")
	}
}

// A bastion that is deleted, or whose network is, ends with all that leads through it.
func TestBastionsGo(t *testing.T) {
	for name, remove := range map[string]func(*api.Client) error{
		"it":          func(c *api.Client) error { return c.DeleteBastion(t.Context(), "a.cli") },
		"its network": func(c *api.Client) error { return c.DeleteNetwork(t.Context(), "a") },
	} {
		_, host, client := withNetworks(t, t.TempDir())
		wanted, someone := bastionFor(t, "a.cli", "a")
		address := putBastion(t, client, wanted).Address
		login, err := someone.login(host, address)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := remove(client); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := login.Wait(); err == nil {
			t.Errorf("%s: nothing has ended", name)
		}
		if _, err := someone.login(host, address); err == nil {
			t.Errorf("%s is gone, and lets users in", name)
		}
	}
}

// A bastion that has never been served leaves no address on the node either.
func TestAddressesOfBastionsGo(t *testing.T) {
	for name, remove := range map[string]func(*api.Client) error{
		"it":          func(c *api.Client) error { return c.DeleteBastion(t.Context(), "a.cli") },
		"its network": func(c *api.Client) error { return c.DeleteNetwork(t.Context(), "a") },
	} {
		_, host, client := withNetworks(t, t.TempDir())
		wanted, _ := bastionFor(t, "a.cli", "a")
		*host.busy = 1
		if _, err := client.PutBastion(t.Context(), wanted); err == nil || len(host.addresses) != 1 {
			t.Fatalf("%s: got %v, addresses %v", name, err, host.addresses)
		}
		if err := remove(client); err != nil || len(host.addresses) > 0 {
			t.Errorf("%s is deleted: %v, addresses %v are left", name, err, host.addresses)
		}
	}
}

// A bastion that is made while its network goes, goes with it.
func TestBastionOfANetworkThatGoes(t *testing.T) {
	server, host, client := withNetworks(t, t.TempDir())
	wanted, someone := bastionFor(t, "a.cli", "a")
	wanted.Address = "172.18.0.208"
	host.removing = func() { // The request has found its network just before.
		server.bastions.mu.Lock()
		defer server.bastions.mu.Unlock()
		if err := errors.Join(server.bastions.store.put(wanted.Name, wanted),
			server.bastions.start(wanted, false)); err != nil {
			t.Error(err)
		}
	}
	if err := client.DeleteNetwork(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if stored, err := server.bastions.store.load(); err != nil || len(stored) > 0 || len(host.addresses) > 0 {
		t.Errorf("left are %v, %v, addresses %v", stored, err, host.addresses)
	}
	if login, err := someone.login(host, wanted.Address); err == nil {
		login.Close()
		t.Error("lets users in, and its network is gone")
	}
}

func TestBastionRequests(t *testing.T) {
	_, _, client := withNetworks(t, t.TempDir())
	for want, change := range map[string]func(*api.Bastion){
		"there is no network": func(b *api.Bastion) { b.Network = "c" },
		"bastion name":        func(b *api.Bastion) { b.Name = ".." },
		"public key of":       func(b *api.Bastion) { b.AuthorizedKey = "ssh-rsa" },
		"key of a bastion":    func(b *api.Bastion) { b.HostKey = nil },
		"at least one range":  func(b *api.Bastion) { b.Ingress = nil },
		"ingress[0]: ":        func(b *api.Bastion) { b.Ingress[0].CIDR = "10.0.0.1" },
		"ingress[0].except: ": func(b *api.Bastion) { b.Ingress[0].Except = []string{"x"} },
		"no address is left":  func(b *api.Bastion) { b.Name = "a.3" },
	} {
		bastion, _ := bastionFor(t, "a.1", "a")
		if want == "no address is left" {
			second := bastion
			second.Name = "a.2"
			putBastion(t, client, bastion)
			putBastion(t, client, second)
		}
		change(&bastion)
		if _, err := client.PutBastion(t.Context(), bastion); err == nil ||
			(!strings.Contains(err.Error(), want) && !api.IsNotFound(err)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A bastion whose address cannot be had is refused when it is asked for, and tried again when it was there before.
func TestAddressesThatAreTaken(t *testing.T) {
	server, host, client := withNetworks(t, t.TempDir())
	wanted, someone := bastionFor(t, "a.cli", "a")
	*host.busy = 1
	if _, err := client.PutBastion(t.Context(), wanted); err == nil ||
		!strings.Contains(err.Error(), "address in use") {
		t.Errorf("got %v", err)
	}
	address := putBastion(t, client, wanted).Address
	server.bastions.close()
	*host.busy = 1
	if err := server.bastions.restore(); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			login, err := someone.login(host, address)
			if err == nil {
				login.Close()
			}
			return err == nil, nil
		})
	if err != nil {
		t.Error("the bastion is not served again")
	}
}
