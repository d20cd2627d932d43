package trellisctl

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
)

const hostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBjIl+ho6NDM5XvXNcbEKVxe0EDUTCqZuK4Vwh2cuPnP"

// withWorkers is a shoot with machines.
func withWorkers() *gardencorev1beta1.Shoot {
	s := shoot("garden-demo", "one", "local")
	s.Spec.Provider.Workers = []gardencorev1beta1.Worker{{Name: "pool"}}
	return s
}

func keyPair(suffix string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "one" + suffix},
		Data:       map[string][]byte{"id_rsa": []byte("KEY" + suffix)},
	}
}

func node(name, address string, ready corev1.ConditionStatus) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		gardencorev1beta1.AnnotationNodeSSHHostKeys: hostKey,
	}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	if address != "" {
		n.Status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: address},
		}
	}
	return n
}

// setReady is what a seed says of a bastion that can be used.
func setReady(bastion *operationsv1alpha1.Bastion) {
	bastion.Status.ObservedGeneration = new(bastion.Generation)
	bastion.Status.Ingress = &corev1.LoadBalancerIngress{IP: "172.18.0.210"}
	bastion.Status.HostKeys = []string{hostKey}
	bastion.Status.Conditions = []gardencorev1beta1.Condition{
		{Type: operationsv1alpha1.BastionReady, Status: gardencorev1beta1.ConditionTrue},
	}
}

// seedSays has bastions be as a seed says that they are.
func seedSays(say func(*operationsv1alpha1.Bastion)) interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
			options ...client.GetOption) error {
			err := c.Get(ctx, key, object, options...)
			if bastion, ok := object.(*operationsv1alpha1.Bastion); ok && err == nil {
				say(bastion)
			}
			return err
		},
	}
}

// sshSession is a session with shoot one, which has machines, and a landscape's way to bastions.
func sshSession(t *testing.T, functions interceptor.Funcs, objects ...client.Object) *Session {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	s := session(t, Target{Project: "demo", Shoot: "one"}, functions,
		append(objects, withWorkers(), keyPair(".ssh-keypair"))...)
	s.garden.Bastions = &BastionRoute{
		Range: "172.18.0.208/28", Address: "127.36.5.1:22022", CIDRs: []string{"172.18.0.0/24"},
	}
	s.listNodes = func(context.Context, *gardencorev1beta1.Shoot) ([]corev1.Node, error) {
		return []corev1.Node{node("node-2", "", "False"), node("node-1", "10.180.0.5", "True")}, nil
	}
	return s
}

func bastionsOf(t *testing.T, s *Session) []operationsv1alpha1.Bastion {
	t.Helper()
	list := &operationsv1alpha1.BastionList{}
	if err := s.client.List(context.WithoutCancel(t.Context()), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// fakeSSH has the program ssh note its arguments, its configuration and its known hosts, and end with a status.
func fakeSSH(t *testing.T, status string) (noted string) {
	t.Helper()
	dir := t.TempDir()
	noted = filepath.Join(dir, "noted")
	script := "#!/bin/sh\n{ echo \"$@\"; cat \"$2\"; cd \"$(dirname \"$2\")\"; cat known_hosts node-key-0; } >" +
		noted + "\nexit " + status + "\n"
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return noted
}

// leftovers are files that a command has not removed.
func leftovers(t *testing.T) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "trellisctl-ssh-*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func TestNodesAreListed(t *testing.T) {
	s := sshSession(t, interceptor.Funcs{})
	command, out, _ := called(t, "")
	if err := s.ssh(command, sshOptions{}, "", nil); err != nil {
		t.Fatal(err)
	}
	const want = "NODE     STATUS     ADDRESS\nnode-1   Ready      10.180.0.5\nnode-2   NotReady   -\n"
	if out.String() != want || len(bastionsOf(t, s)) > 0 {
		t.Errorf("got\n%s", out)
	}
	m, err := s.machines(t.Context())
	if want := []string{"node-1", "node-2"}; err != nil || !slices.Equal(m.names(), want) {
		t.Errorf("completed are %q, %v", m.names(), err)
	}
}

// A command runs on the node with keys that are pinned; its status is that of trellisctl; and nothing is left.
func TestSSHRunsACommand(t *testing.T) {
	noted := fakeSSH(t, "7")
	var made operationsv1alpha1.Bastion
	s := sshSession(t, seedSays(func(b *operationsv1alpha1.Bastion) { setReady(b); made = *b }))
	command, _, _ := called(t, "")
	err := s.ssh(command, sshOptions{timeout: time.Minute}, "node-1", []string{"uptime", "-p"})
	if exit := (ExitError{}); !errors.As(err, &exit) || exit.Code != 7 {
		t.Fatalf("got %v", err)
	}
	said, err := os.ReadFile(noted)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"/config node-1 -- uptime -p\n", "\n  HostName 127.36.5.3\n", "\n  Port 22022\n", "\n  HostName 10.180.0.5\n",
		"\n  ProxyJump " + made.Name + "\n", made.Name + " " + hostKey + "\n", "node-1 " + hostKey + "\n",
		"KEY.ssh-keypair",
	} {
		if !strings.Contains(string(said), want) {
			t.Errorf("ssh was not told %q, but\n%s", want, said)
		}
	}
	if strings.Contains(string(said), "StrictHostKeyChecking ask") {
		t.Error("a key is known, and not pinned")
	}
	if !strings.HasPrefix(made.Spec.SSHPublicKey, "ssh-ed25519 ") || made.Spec.ShootRef.Name != "one" ||
		len(made.Spec.Ingress) != 1 || made.Spec.Ingress[0].IPBlock.CIDR != "172.18.0.0/24" {
		t.Errorf("asked for %+v", made.Spec)
	}
	if left := bastionsOf(t, s); len(left) > 0 || len(leftovers(t)) > 0 {
		t.Errorf("left: %v, %q", left, leftovers(t))
	}
}

// Without a terminal it is printed how to log in, and with --no-keepalive that is all; what is printed works then.
func TestSSHPrintsTheWay(t *testing.T) {
	fakeSSH(t, "1")
	s := sshSession(t, seedSays(setReady), keyPair(".ssh-keypair.old"))
	command, out, told := called(t, "")
	options := sshOptions{keep: true, noKeepalive: true, timeout: time.Minute, cidrs: []string{"198.51.100.0/24"}}
	options.format.value = formatJSON
	if err := s.ssh(command, options, "node-1", nil); err != nil {
		t.Fatal(err)
	}
	var printed printedWay
	if err := json.Unmarshal(out.Bytes(), &printed); err != nil {
		t.Fatal(err)
	}
	left := bastionsOf(t, s)
	if len(left) != 1 || printed.Bastion.Name != left[0].Name || printed.Bastion.PreferredAddress != "127.36.5.3" ||
		printed.Bastion.Port != 22022 || printed.NodeHostname != "10.180.0.5" || len(printed.Nodes) != 2 ||
		len(printed.NodePrivateKeyFiles) != 2 || left[0].Spec.Ingress[0].IPBlock.CIDR != "198.51.100.0/24" {
		t.Errorf("printed %+v, bastions %+v", printed, left)
	}
	for _, file := range append(printed.NodePrivateKeyFiles, printed.ConfigFile, printed.Bastion.PrivateKeyFile) {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	if !strings.Contains(told.String(), "stays until an hour after") {
		t.Errorf("told %q", told)
	}
}

// Where no bastion could be made, no keys are left, although it was to be kept.
func TestKeysWithoutABastion(t *testing.T) {
	refused := interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object,
		...client.CreateOption) error {
		return errors.New("no more than so many")
	}}
	s := sshSession(t, refused)
	command, _, _ := called(t, "")
	err := s.ssh(command, sshOptions{keep: true, timeout: time.Minute}, "node-1", nil)
	if err == nil || !strings.Contains(err.Error(), "no more than so many") || len(leftovers(t)) > 0 {
		t.Errorf("got %v; left %q", err, leftovers(t))
	}
}

// An interrupt takes the bastion away, whatever is waited for.
func TestInterruptedSSH(t *testing.T) {
	for name, say := range map[string]func(*operationsv1alpha1.Bastion){
		"while it waits":        func(*operationsv1alpha1.Bastion) {},
		"while it keeps it":     setReady,
		"while it says nothing": func(b *operationsv1alpha1.Bastion) { b.Status.Conditions = nil },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			s := sshSession(t, seedSays(func(b *operationsv1alpha1.Bastion) {
				say(b)
				interrupt()
			}))
			command, _, _ := called(t, "")
			command.SetContext(ctx)
			if err := s.ssh(command, sshOptions{timeout: time.Minute}, "node-1", nil); err != nil &&
				!errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if left := bastionsOf(t, s); len(left) > 0 || len(leftovers(t)) > 0 {
				t.Errorf("left: %v, %q", left, leftovers(t))
			}
		})
	}
}

// Each state is told once, and a bastion that does not come is given up.
func TestWaitingForABastion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		s := session(t, Target{}, seedSays(func(b *operationsv1alpha1.Bastion) {
			setReady(b)
			b.Status.Conditions[0].Status = gardencorev1beta1.ConditionFalse
			if looks++; looks > 2 {
				b.Status.Conditions[0].Message = "no address is left"
			}
		}))
		bastion, err := s.ensureBastion(t.Context(), withWorkers(), "", "ssh-ed25519 A", []string{"10.0.0.0/8"})
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		err = s.awaitBastion(t.Context(), bastion, time.Minute, func(format string, arguments ...any) {
			told = append(told, oneLine(arguments[1].(string)))
		})
		if err == nil || !strings.Contains(err.Error(), "cannot be used after 1m0s: no address is left") {
			t.Errorf("got %v", err)
		}
		if !slices.Contains(told, "no address is left") || len(told) > 2 {
			t.Errorf("told %q", told)
		}
	})
}

// A bastion is kept alive as long as it is used.
func TestBastionIsKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := 0
		s := session(t, Target{}, interceptor.Funcs{
			Patch: func(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch,
				_ ...client.PatchOption) error {
				if object.GetAnnotations()[gardencorev1beta1.GardenerOperation] ==
					gardencorev1beta1.GardenerOperationKeepalive {
					kept++
				}
				return nil
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		s.keepAlive(ctx, &operationsv1alpha1.Bastion{}, func(string, ...any) {})
		if kept < 30 {
			t.Errorf("kept alive %d times in two hours", kept)
		}
	})
}

func TestSSHThatCannotBe(t *testing.T) {
	forbidden := apierrors.NewForbidden(operationsv1alpha1.Resource("bastions"), "cli", errors.New("viewer"))
	refuse := interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return forbidden
		},
	}
	unreadable := interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
			options ...client.GetOption) error {
			if _, isSecret := object.(*corev1.Secret); isSecret {
				return forbidden
			}
			return c.Get(ctx, key, object, options...)
		},
	}
	for want, test := range map[string]struct {
		functions interceptor.Funcs
		node      string
		change    func(*Session, *sshOptions)
	}{
		`has no node "node-9", but node-1, node-2`: {node: "node-9"},
		`node "node-2" has no address yet`:         {node: "node-2"},
		"you may not make bastions":                {node: "node-1", functions: refuse},
		"you may not read the key to the machines": {node: "node-1", functions: unreadable},
		"--public-key-file": {
			node: "node-1", change: func(_ *Session, o *sshOptions) { o.publicKeyFile = "/none" },
		},
		"listing the nodes of shoot garden-demo/one: hibernated": {
			node: "node-1", change: func(s *Session, _ *sshOptions) {
				s.listNodes = func(context.Context, *gardencorev1beta1.Shoot) ([]corev1.Node, error) {
					return nil, errors.New("hibernated")
				}
			},
		},
	} {
		s := sshSession(t, test.functions)
		options := sshOptions{timeout: time.Minute}
		if test.change != nil {
			test.change(s, &options)
		}
		command, _, _ := called(t, "")
		if err := s.ssh(command, options, test.node, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if left := leftovers(t); len(left) > 0 || len(bastionsOf(t, s)) > 0 {
			t.Errorf("%s: left %q", want, left)
		}
	}
}

func TestShootsWithoutSSH(t *testing.T) {
	for want, change := range map[string]func(*gardencorev1beta1.Shoot){
		"has no workers": func(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Workers = nil },
		"allows no SSH": func(s *gardencorev1beta1.Shoot) {
			s.Spec.Provider.WorkersSettings = &gardencorev1beta1.WorkersSettings{
				SSHAccess: &gardencorev1beta1.SSHAccess{Enabled: false},
			}
		},
		"has no control plane yet": func(s *gardencorev1beta1.Shoot) { s.Status.TechnicalID = "" },
	} {
		s := withWorkers()
		change(s)
		if err := mayHaveSSH(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestFlagsOfSSH(t *testing.T) {
	for want, arguments := range map[string]string{
		"name one node at most":            "a b",
		"name the node on which":           "-- uptime",
		"add --keep-bastion":               "a --no-keepalive",
		"belongs to a public key":          "a --private-key-file k",
		"--bastion-name is for a bastion":  "a --bastion-name b",
		"a range is such as":               "a --cidr 10.0.0.1",
		"either a command runs on the nod": "a -o json -- uptime",
	} {
		root := NewCommand()
		root.SetArgs(append([]string{"ssh"}, strings.Fields(arguments)...))
		if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", arguments, err, want)
		}
	}
}

// A bastion of before is used again by who has its key, from where they are now; nobody else's is changed.
func TestBastionIsUsedAgain(t *testing.T) {
	s := session(t, Target{}, interceptor.Funcs{})
	first, err := s.ensureBastion(t.Context(), withWorkers(), "mine", "ssh-ed25519 A", []string{"10.0.0.0/8"})
	if err != nil || first.Name != "mine" {
		t.Fatalf("got %+v, %v", first, err)
	}
	again, err := s.ensureBastion(t.Context(), withWorkers(), "mine", "ssh-ed25519 A", []string{"192.0.2.0/24"})
	if err != nil || again.Spec.Ingress[0].IPBlock.CIDR != "192.0.2.0/24" ||
		again.Annotations[gardencorev1beta1.GardenerOperation] != gardencorev1beta1.GardenerOperationKeepalive {
		t.Errorf("got %+v, %v", again, err)
	}
	if _, err := s.ensureBastion(t.Context(), withWorkers(), "mine", "ssh-ed25519 B", nil); err == nil ||
		!strings.Contains(err.Error(), "for another key") {
		t.Errorf("got %v", err)
	}
}

// Only an address that others see is taken for that of the user.
func TestOwnRange(t *testing.T) {
	for address, want := range map[string]string{
		"203.0.113.7": "203.0.113.7/32", "2001:db8:1:2::7": "2001:db8:1:2::/64", "192.168.1.2": "", "127.0.0.1": "",
		"fe80::1": "", "fd00::1": "",
	} {
		got, err := rangeOf(netip.MustParseAddr(address))
		if (want == "") != (err != nil) || (err == nil && got.String() != want) {
			t.Errorf("%s: got %s, %v", address, got, err)
		}
	}
	if address, err := ownAddress("https://127.0.0.1:443"); err != nil || !address.IsLoopback() {
		t.Errorf("got %s, %v", address, err)
	}
}

// A bastion out of the range of the configuration is reached at its own address.
func TestWayToABastion(t *testing.T) {
	route := &BastionRoute{Range: "172.18.0.208/28", Address: "127.36.5.1:22022"}
	for host, want := range map[string]string{
		"172.18.0.208": "127.36.5.1", "172.18.0.223": "127.36.5.16", "172.18.0.224": "172.18.0.224",
		"203.0.113.9": "203.0.113.9", "bastion.example.com": "bastion.example.com",
	} {
		if address, port := route.to(host); address != want || (port != 0) != (address != host) {
			t.Errorf("%s: reached at %s port %d, want %s", host, address, port, want)
		}
	}
	for host, want := range map[string]string{
		"fd00::": "fd01::fffe", "fd00::2": "fd01::1:0", "fd00::ffff:ffff:ffff:ffff": "fd01:0:0:1::fffd",
	} {
		large := &BastionRoute{Range: "fd00::/64", Address: "[fd01::fffe]:22022"}
		if address, _ := large.to(host); address != want {
			t.Errorf("%s: reached at %s, want %s", host, address, want)
		}
	}
	beyond := &BastionRoute{Range: "172.18.0.208/28", Address: "255.255.255.241:22022"}
	if field, err := beyond.check(); field != "address" || err == nil {
		t.Errorf("a way with too few addresses: %q, %v", field, err)
	}
	if address, _ := beyond.to("172.18.0.223"); address != "172.18.0.223" {
		t.Errorf("beyond the last address there is %s", address)
	}
	if address, port := (*BastionRoute)(nil).to("172.18.0.208"); address != "172.18.0.208" || port != 0 {
		t.Errorf("without a configuration: %s port %d", address, port)
	}
}
