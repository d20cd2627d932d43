package etcd

import (
	"crypto/x509"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

const threeMembers = "m-0=https://m-0:2380,m-1=https://m-1:2380,m-2=https://m-2:2380"

// memberOptions are valid options of one of three members.
func memberOptions(t *testing.T, flags ...string) Options {
	t.Helper()
	options := DefaultOptions()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	options.AddFlags(set)
	err := set.Parse(append([]string{
		"--name=m-1", "--members=" + threeMembers, "--listen-peer-urls=https://0.0.0.0:2380", "--peer-cert-file=a",
		"--peer-key-file=b", "--peer-trusted-ca-file=c",
	}, flags...))
	if err != nil {
		t.Fatal(err)
	}
	return options
}

func TestMembersAreReadInOrder(t *testing.T) {
	options := memberOptions(t)
	if err := options.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := (*memberList)(&options.Members).String(); got != threeMembers {
		t.Errorf("got %s", got)
	}
	if options.startsSingle() || options.first() || options.self().PeerURL != "https://m-1:2380" {
		t.Errorf("it is taken for %+v", options.self())
	}
	if others := options.others(); len(others) != 2 || others[0].Name != "m-0" || others[1].Name != "m-2" {
		t.Errorf("the others are %v", others)
	}
}

func TestWrongMembersAreRefused(t *testing.T) {
	for flag, says := range map[string]string{
		"--name=m-3":            "not among them",
		"--restore-request=one": "--restore-request needs --store-provider",
		"--members=m-0=https://m-0:2380,m-1=https://m-1:2380":                      "there are 2",
		"--members=m-0=https://m-0:2380,m-1=https://m-0:2380,m-2=https://m-2:2380": "another has",
		"--members=m-1=https://m-0:2380,m-1=https://m-1:2380,m-2=https://m-2:2380": "another has",
		"--members=m-0=http://m-0:2380,m-1=https://m-1:2380,m-2=https://m-2:2380":  "is not a URL",
		"--members=m-0=https://m-0,m-1=https://m-1:2380,m-2=https://m-2:2380":      "is not a URL",
		"--members=":                                "--peer-cert-file needs --members",
		"--single-member":                           "is not the first of --members",
		"--peer-cert-file=":                         "--peer-cert-file must be set",
		"--peer-trusted-ca-file=":                   "--peer-trusted-ca-file must be set",
		"--listen-peer-urls=http://127.0.0.1:2380":  "must be https",
		"--listen-client-urls=https://0.0.0.0:2379": "no address",
		"--advertise-client-urls=https://[::]:2379": "no address",
	} {
		options := memberOptions(t, flag)
		if err := options.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", flag, err, says)
		}
	}
	alone := DefaultOptions()
	alone.SingleMember = true
	if err := alone.Validate(); err == nil || !strings.Contains(err.Error(), "--single-member needs --members") {
		t.Errorf("a single member without peers: got %v", err)
	}
	var l memberList
	if err := l.Set("m-0"); err == nil {
		t.Error("a member without URL was accepted")
	}
}

// Its data can be replaced by that of a point in time, as long as it has no others.
func TestTheFirstMemberMayBeSingle(t *testing.T) {
	options := memberOptions(t, "--name=m-0", "--single-member", "--restore-request=one",
		"--restore-to=2026-01-02T03:04:05Z", "--store-provider=Local", "--store-bucket=/b")
	if err := options.Validate(); err != nil || !options.startsSingle() || !options.hasPeers() || !options.first() {
		t.Errorf("got %v for %+v", err, options)
	}
}

// An earlier life of the cluster must not be taken for this one, although it has the same members.
func TestEachNewClusterIsAnother(t *testing.T) {
	for _, options := range []Options{memberOptions(t), memberOptions(t, "--name=m-0", "--single-member")} {
		if first, second := options.founder(), options.founder(); first.token == second.token {
			t.Errorf("two clusters have the token %s", first.token)
		}
		if f := options.founder(); f.peerURL != "https://"+options.Name+":2380" {
			t.Errorf("the others are to find %s at %s", options.Name, f.peerURL)
		}
	}
	single := DefaultOptions()
	if f := single.founder(); f.token != clusterToken || f.peerURL != advertisedPeerURL {
		t.Errorf("a single member's data is built for %+v", f)
	}
}

func TestClientsAndPeersHaveAuthoritiesOfTheirOwn(t *testing.T) {
	clients, peers := newAuthority(t, "clients"), newAuthority(t, "peers")
	dir := t.TempDir()
	both := filepath.Join(dir, "both.crt")
	write(t, both, string(peers.pem())+string(clients.pem()))
	for name, test := range map[string]struct{ clients, peers, says string }{
		"each its own":            {clients.file, peers.file, ""},
		"the same":                {clients.file, clients.file, "authority of their own"},
		"one that has both":       {clients.file, both, "authority of their own"},
		"no client is verified":   {"", peers.file, ""},
		"a file that is missing":  {clients.file, filepath.Join(dir, "missing"), "--peer-trusted-ca-file"},
		"a file without any":      {clients.file, keyOf(t, peers), "it has no certificate"},
		"clients without a file":  {filepath.Join(dir, "missing"), peers.file, "--trusted-ca-file"},
		"a certificate of theirs": {peers.file, peers.file, "authority of their own"},
	} {
		options := memberOptions(t)
		options.TrustedCAFile, options.PeerTrustedCAFile = test.clients, test.peers
		err := options.checkAuthorities()
		if (err == nil) != (test.says == "") || (err != nil && !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: got %v, want %q", name, err, test.says)
		}
	}
}

func keyOf(t *testing.T, a *authority) string {
	t.Helper()
	_, key := a.issue(t, x509.ExtKeyUsageClientAuth)
	return key
}
