package jump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/crypto/ssh"

	"github.com/trellis-garden/trellis/pkg/bastionaccess"
)

// signer is a new key.
func signer(t *testing.T) ssh.Signer {
	t.Helper()
	access, err := bastionaccess.New("")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := access.Signer()
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// machine is a server that says what it hears, in upper case.
func machine(t *testing.T) netip.AddrPort {
	t.Helper()
	listener := listen(t)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				heard, _ := io.ReadAll(connection)
				fmt.Fprint(connection, strings.ToUpper(string(heard)))
			}()
		}
	}()
	return netip.MustParseAddrPort(listener.Addr().String())
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

var errElsewhere = errors.New("no machine of this shoot")

// bastion is a server that leads to one address.
type bastion struct {
	address string
	user    ssh.Signer
	hostKey ssh.PublicKey
	// end ends it, and waits for that.
	end func()
}

func serve(t *testing.T, only netip.AddrPort, change func(*Options)) bastion {
	t.Helper()
	user, host := signer(t), signer(t)
	options := Options{
		HostKey: host, AuthorizedKey: user.PublicKey(), Log: logr.Discard(),
		From: func(netip.Addr) bool { return true },
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to != only {
				return nil, errElsewhere
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", to.String())
		},
	}
	if change != nil {
		change(&options)
	}
	listener := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, listener, options) }()
	end := func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended <- nil
	}
	t.Cleanup(end)
	return bastion{listener.Addr().String(), user, host.PublicKey(), end}
}

func (b bastion) login(user string, key ssh.Signer) (*ssh.Client, error) {
	return ssh.Dial("tcp", b.address, &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.FixedHostKey(b.hostKey),
		Timeout: 10 * time.Second,
	})
}

func (b bastion) mustLogin(t *testing.T) *ssh.Client {
	t.Helper()
	client, err := b.login(bastionaccess.User, b.user)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestTheWayToAMachine(t *testing.T) {
	there := machine(t)
	client := serve(t, there, nil).mustLogin(t)
	connection, err := client.Dial("tcp", there.String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(connection, "hello")
	if err := connection.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(connection); err != nil || string(answer) != "HELLO" {
		t.Errorf("got %q, %v", answer, err)
	}
}

// Who has not the key of the bastion, or is not its user, is not let in.
func TestAttackStrangersAtABastion(t *testing.T) {
	b := serve(t, netip.AddrPort{}, nil)
	for name, login := range map[string]func() (*ssh.Client, error){
		"another key":  func() (*ssh.Client, error) { return b.login(bastionaccess.User, signer(t)) },
		"another user": func() (*ssh.Client, error) { return b.login("root", b.user) },
		"a password": func() (*ssh.Client, error) {
			return ssh.Dial("tcp", b.address, &ssh.ClientConfig{
				User: bastionaccess.User, Auth: []ssh.AuthMethod{ssh.Password("")},
				HostKeyCallback: ssh.FixedHostKey(b.hostKey), Timeout: 10 * time.Second,
			})
		},
	} {
		if client, err := login(); err == nil {
			client.Close()
			t.Errorf("%s: is let in", name)
		}
	}
}

// Connections from other ranges are closed before anything is said.
func TestAttackFromAnotherRange(t *testing.T) {
	b := serve(t, netip.AddrPort{}, func(o *Options) {
		o.From = netip.MustParsePrefix("203.0.113.0/24").Contains
	})
	connection, err := net.Dial("tcp", b.address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if said, err := io.ReadAll(connection); len(said) > 0 {
		t.Errorf("said %q, %v", said, err)
	}
	if _, err := b.login(bastionaccess.User, b.user); err == nil {
		t.Error("the user is let in from elsewhere")
	}
}

// A user who is let in gets to the machines, and nowhere else; and neither a shell nor a listener.
func TestAttackThroughABastion(t *testing.T) {
	there, elsewhere := machine(t), machine(t)
	client := serve(t, there, nil).mustLogin(t)
	for _, address := range []string{
		elsewhere.String(), netip.AddrPortFrom(there.Addr(), 443).String(), "[::1]:22", "169.254.169.254:80",
	} {
		if connection, err := client.Dial("tcp", address); err == nil {
			connection.Close()
			t.Errorf("leads to %s", address)
		} else if !strings.Contains(err.Error(), errElsewhere.Error()) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, channel := range []string{"session", "x11", "direct-streamlocal@openssh.com", "forwarded-tcpip"} {
		if opened, _, err := client.OpenChannel(channel, nil); err == nil {
			opened.Close()
			t.Errorf("opens a channel of type %s", channel)
		}
	}
	if listener, err := client.Listen("tcp", "127.0.0.1:0"); err == nil {
		listener.Close()
		t.Error("listens for the user")
	}
}

// Who opens many channels gets no more than some.
func TestAttackManyChannels(t *testing.T) {
	silent := listen(t)
	client := serve(t, netip.MustParseAddrPort(silent.Addr().String()), nil).mustLogin(t)
	for i := range maxChannels {
		if _, err := client.Dial("tcp", silent.Addr().String()); err != nil {
			t.Fatalf("channel %d: %v", i, err)
		}
	}
	if _, err := client.Dial("tcp", silent.Addr().String()); err == nil ||
		!strings.Contains(err.Error(), "too many connections") {
		t.Errorf("one more: %v", err)
	}
}

// Who connects and does not log in takes nothing from who does: neither what the user has, nor the way in.
func TestAttackConnectionsThatDoNotLogIn(t *testing.T) {
	there := machine(t)
	b := serve(t, there, nil)
	before := b.mustLogin(t)
	for range maxConnections + maxHandshakes {
		silent, err := net.Dial("tcp", b.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { silent.Close() })
	}
	for name, client := range map[string]*ssh.Client{"before": before, "meanwhile": b.mustLogin(t)} {
		connection, err := client.Dial("tcp", there.String())
		if err != nil {
			t.Errorf("logged in %s: %v", name, err)
			continue
		}
		connection.Close()
	}
}

// A user has no more than some connections at a time.
func TestConnectionsOfTheUser(t *testing.T) {
	there := machine(t)
	b := serve(t, there, nil)
	for i := range maxConnections {
		if _, err := b.mustLogin(t).Dial("tcp", there.String()); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	if connection, err := b.mustLogin(t).Dial("tcp", there.String()); err == nil {
		connection.Close()
		t.Error("one more is served")
	}
}

// When a bastion ends, so does what leads through it.
func TestTheEndOfABastion(t *testing.T) {
	silent := listen(t)
	b := serve(t, netip.MustParseAddrPort(silent.Addr().String()), nil)
	connection, err := b.mustLogin(t).Dial("tcp", silent.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b.end()
	if read, err := connection.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes through a bastion that has ended", read)
	}
	if _, err := b.login(bastionaccess.User, b.user); err == nil {
		t.Error("a bastion that has ended lets users in")
	}
}

func TestDestinations(t *testing.T) {
	for name, test := range map[string]struct {
		host string
		port uint32
		want string // an address, or a part of the error
	}{
		"a machine":       {"10.180.0.5", 22, "10.180.0.5:22"},
		"IPv4 in IPv6":    {"::ffff:10.180.0.5", 22, "10.180.0.5:22"},
		"a name":          {"localhost", 22, "no IP address"},
		"octal":           {"010.180.0.5", 22, "no IP address"},
		"a zone":          {"fe80::1%eth0", 22, "no IP address"},
		"no port":         {"10.180.0.5", 0, "no port"},
		"a port too high": {"10.180.0.5", 65536 + 22, "no port"},
	} {
		got, err := destination(asking(test.host, test.port))
		if (err == nil && got.String() != test.want) || (err != nil && !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
}

func asking(host string, port uint32) []byte {
	return ssh.Marshal(struct {
		Host       string
		Port       uint32
		OriginHost string
		OriginPort uint32
	}{host, port, "127.0.0.1", 1})
}

func FuzzDestination(f *testing.F) {
	f.Add(asking("10.180.0.5", 22))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		if to, err := destination(data); err == nil && (!to.IsValid() || to.Port() == 0 || to.Addr().Is4In6()) {
			t.Errorf("leads to %s", to)
		}
	})
}
