package server

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/miekg/dns"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cni"
)

// recordingHost remembers what the node would look like.
type recordingHost struct {
	bridges  map[string]netip.Prefix
	firewall []string
	fail     error
	// removing is called while a bridge is removed.
	removing func()
	bastionsHost
}

func (h *recordingHost) EnsureBridge(name string, gateway netip.Prefix) error {
	if h.fail != nil {
		return h.fail
	}
	h.bridges[name] = gateway
	return nil
}

func (h *recordingHost) RemoveBridge(name string) error {
	if h.removing != nil {
		h.removing()
	}
	delete(h.bridges, name)
	return nil
}

func (h *recordingHost) ApplyFirewall(_ context.Context, networks []api.Network) error {
	h.firewall = nil
	for _, network := range networks {
		h.firewall = append(h.firewall, network.Name)
	}
	return nil
}

func newCloud(t *testing.T, dir string) (*Server, *recordingHost, *api.Client) {
	t.Helper()
	host := &recordingHost{bridges: map[string]netip.Prefix{}, bastionsHost: newBastionsHost()}
	server := New(Options{
		Zone: "local.trellis.garden", StateDir: dir, Token: "secret", Host: host, Log: logr.Discard(),
		Pool: netip.MustParsePrefix("10.180.0.0/16"), Reserved: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")},
		Node: netip.MustParseAddr("172.18.0.2"), Bastions: netip.MustParsePrefix("172.18.0.208/31"),
		Records: []api.Record{{FQDN: "api.garden.local.trellis.garden", Type: "A", Values: []string{"172.18.0.2"}}},
	})
	if err := errors.Join(server.records.restore(), server.networks.restore(t.Context()),
		server.bastions.restore()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.bastions.close)
	listener := httptest.NewServer(server.Handler())
	t.Cleanup(listener.Close)
	return server, host, &api.Client{Endpoint: listener.URL, Token: "secret"}
}

func TestNetworkLifecycle(t *testing.T) {
	dir := t.TempDir()
	_, host, client := newCloud(t, dir)
	ctx := t.Context()

	created, err := client.PutNetwork(ctx, api.Network{Name: "shoot--a", Namespace: "infra-shoot--a"})
	if err != nil {
		t.Fatal(err)
	}
	want := api.Network{
		Name: "shoot--a", Namespace: "infra-shoot--a", CIDR: "10.180.0.0/24", Gateway: "10.180.0.1",
		Bridge: bridgeName("shoot--a"), EgressCIDR: "172.18.0.2/32",
		VolumesDir: filepath.Join(dir, "machine-volumes", "shoot--a"),
	}
	if created != want {
		t.Fatalf("got %+v, want %+v", created, want)
	}
	if again, err := client.PutNetwork(ctx, api.Network{Name: "shoot--a", Namespace: "infra-shoot--a"}); err != nil ||
		again != want {
		t.Errorf("repeating a request must change nothing: %+v, %v", again, err)
	}
	if second, err := client.PutNetwork(ctx, api.Network{Name: "shoot--b", Namespace: "infra-shoot--b"}); err != nil ||
		second.CIDR != "10.180.1.0/24" {
		t.Errorf("the second network must get the next subnet: %+v, %v", second, err)
	}
	if gateway := host.bridges[want.Bridge]; gateway.String() != "10.180.0.1/24" {
		t.Errorf("bridge has %s", gateway)
	}
	file, err := cni.ReadNetwork(filepath.Join(dir, "networks"), "infra-shoot--a")
	if err != nil || file == nil || file.Subnet != "10.180.0.0/24" || file.Bridge != want.Bridge {
		t.Errorf("CNI file: %+v, %v", file, err)
	}

	if err := client.DeleteNetwork(ctx, "shoot--a"); err != nil {
		t.Fatal(err)
	}
	if err := client.DeleteNetwork(ctx, "shoot--a"); err != nil {
		t.Errorf("deleting again: %v", err)
	}
	if _, err := client.GetNetwork(ctx, "shoot--a"); !api.IsNotFound(err) {
		t.Errorf("after deletion: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "networks", "infra-shoot--a.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the CNI file is still there: %v", err)
	}
	if _, err := os.Stat(want.VolumesDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the volumes are still there: %v", err)
	}
	if len(host.bridges) != 1 || !reflect.DeepEqual(host.firewall, []string{"shoot--b"}) {
		t.Errorf("left on the node: %v, %v", host.bridges, host.firewall)
	}
}

func TestNetworksAreMadeTrueAgainAfterACrash(t *testing.T) {
	dir := t.TempDir()
	server, host, _ := newCloud(t, dir)
	host.fail = errors.New("killed here")
	if _, err := server.networks.put(t.Context(), api.Network{Name: "a", Namespace: "infra-a"}); err == nil {
		t.Fatal("the failure must be reported")
	}

	_, revived, client := newCloud(t, dir)
	if len(revived.bridges) != 1 || len(revived.firewall) != 1 {
		t.Errorf("the network that was asked for must be there: %v, %v", revived.bridges, revived.firewall)
	}
	if network, err := client.GetNetwork(t.Context(), "a"); err != nil || network.CIDR != "10.180.0.0/24" {
		t.Errorf("%+v, %v", network, err)
	}
}

func TestNetworkRequests(t *testing.T) {
	_, _, client := newCloud(t, t.TempDir())
	if _, err := client.PutNetwork(t.Context(),
		api.Network{Name: "a", Namespace: "infra-a", CIDR: "10.180.0.0/24"}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		request api.Network
		want    string // a CIDR, or part of an error
	}{
		"same again": {
			api.Network{Name: "a", Namespace: "infra-a", CIDR: "10.180.0.0/24"}, "10.180.0.0/24",
		},
		"range shared with others": {
			api.Network{Name: "r", Namespace: "infra-r", Range: "10.180.0.0/16"}, "10.180.1.0/24",
		},
		"small range": {
			api.Network{Name: "s", Namespace: "infra-s", Range: "10.250.0.0/28"}, "10.250.0.0/28",
		},
		"overlap": {
			api.Network{Name: "b", Namespace: "infra-b", CIDR: "10.180.0.128/25"}, "overlaps 10.180.0.0/24",
		},
		"overlap with the node's": {
			api.Network{Name: "b", Namespace: "infra-b", CIDR: "10.1.2.0/24"}, "overlaps 10.1.0.0/16",
		},
		"other subnet for the same": {
			api.Network{Name: "a", Namespace: "infra-a", CIDR: "10.180.9.0/24"}, "cannot change",
		},
		"other namespace for the same": {api.Network{Name: "a", Namespace: "infra-x"}, "belongs to namespace infra-a"},
		"namespace with two networks": {
			api.Network{Name: "c", Namespace: "infra-a"}, "attached to network a already",
		},
		"no CIDR":                       {api.Network{Name: "d", Namespace: "infra-d", CIDR: "10.180.0.0"}, "cidr"},
		"name that is a path":           {api.Network{Name: "..", Namespace: "infra-d"}, "network name"},
		"namespace with strange letter": {api.Network{Name: "d", Namespace: "infra/d"}, "namespace"},
	} {
		got, err := client.PutNetwork(t.Context(), test.request)
		if err == nil && got.CIDR != test.want {
			t.Errorf("%s: got %s, want %s", name, got.CIDR, test.want)
		}
		if err != nil && !strings.Contains(err.Error(), test.want) && !api.IsNotFound(err) {
			t.Errorf("%s: got error %v, want %s", name, err, test.want)
		}
	}
}

func TestAllocateUntilThePoolIsUsedUp(t *testing.T) {
	pool := netip.MustParsePrefix("10.0.0.0/22")
	var taken []netip.Prefix
	for i := range 4 {
		subnet, err := allocate(pool, 24, taken)
		if err != nil || !pool.Overlaps(subnet) || overlapsAny(subnet, taken) {
			t.Fatalf("allocation %d: %s, %v", i, subnet, err)
		}
		taken = append(taken, subnet)
	}
	if subnet, err := allocate(pool, 24, taken); !errors.Is(err, errConflict) {
		t.Errorf("got %s, %v", subnet, err)
	}
	end := netip.MustParsePrefix("255.255.255.0/24")
	if _, err := allocate(end, 24, []netip.Prefix{end}); !errors.Is(err, errConflict) {
		t.Errorf("end of the address space: %v", err)
	}
}

func TestTokenIsRequired(t *testing.T) {
	_, _, client := newCloud(t, t.TempDir())
	client.Token = "wrong"
	if _, err := client.GetNetwork(t.Context(), "a"); !api.IsUnauthorized(err) {
		t.Errorf("got %v", err)
	}
}

func TestFirewall(t *testing.T) {
	rules := renderFirewall(
		[]api.Network{{Name: "a", Bridge: "lc1"}},
		Services{Node: netip.MustParseAddr("172.18.0.2"), TCP: []uint16{443}, UDP: []uint16{51820}, DNSPort: 5353},
	)
	want := `*filter
:TRELLIS-LOCAL-CLOUD - [0:0]
:TRELLIS-LOCAL-CLOUD-IN - [0:0]
:TRELLIS-LOCAL-CLOUD-OUT - [0:0]
-A TRELLIS-LOCAL-CLOUD -i lc1 -o lc1 -j ACCEPT
-A TRELLIS-LOCAL-CLOUD -o lc1 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A TRELLIS-LOCAL-CLOUD -o lc1 -j REJECT --reject-with icmp-admin-prohibited
-A TRELLIS-LOCAL-CLOUD -i lc1 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A TRELLIS-LOCAL-CLOUD -i lc1 -m conntrack --ctstate DNAT --ctorigdst 172.18.0.2 -j ACCEPT
-A TRELLIS-LOCAL-CLOUD -i lc1 -j REJECT --reject-with icmp-admin-prohibited
-A TRELLIS-LOCAL-CLOUD-IN -i lc1 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A TRELLIS-LOCAL-CLOUD-IN -i lc1 -p icmp -j ACCEPT
-A TRELLIS-LOCAL-CLOUD-IN -i lc1 -d 172.18.0.2 -p tcp --dport 443 -j ACCEPT
-A TRELLIS-LOCAL-CLOUD-IN -i lc1 -d 172.18.0.2 -p udp --dport 51820 -j ACCEPT
-A TRELLIS-LOCAL-CLOUD-IN -i lc1 -j REJECT --reject-with icmp-admin-prohibited
-A TRELLIS-LOCAL-CLOUD-OUT -o lc1 -p tcp --dport 22 -m mark --mark 0x22000000 -j ACCEPT
-A TRELLIS-LOCAL-CLOUD-OUT -o lc1 -m conntrack --ctstate NEW -j REJECT --reject-with icmp-admin-prohibited
COMMIT
*nat
:TRELLIS-LOCAL-CLOUD-DNS - [0:0]
-A TRELLIS-LOCAL-CLOUD-DNS -i lc1 -d 172.18.0.2 -p udp --dport 53 -j DNAT --to-destination 172.18.0.2:5353
-A TRELLIS-LOCAL-CLOUD-DNS -i lc1 -d 172.18.0.2 -p tcp --dport 53 -j DNAT --to-destination 172.18.0.2:5353
COMMIT
`
	if rules != want {
		t.Errorf("got\n%s\nwant\n%s", rules, want)
	}
}

func TestDNS(t *testing.T) {
	dir := t.TempDir()
	_, _, client := newCloud(t, dir)
	for _, record := range []api.Record{
		{FQDN: "api.x.demo.local.trellis.garden", Type: "A", Values: []string{"172.18.0.2"}, TTL: 120},
		{
			FQDN: "*.ingress.local.trellis.garden", Type: "CNAME", Values: []string{"api.x.demo.local.trellis.garden."},
			TTL: 60,
		},
		{FQDN: "text.local.trellis.garden", Type: "TXT", Values: []string{"a b"}},
	} {
		if err := client.PutRecord(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.PutRecord(t.Context(),
		api.Record{FQDN: "other.example.com", Type: "A", Values: []string{"10.0.0.1"}}); !api.IsInvalid(err) {
		t.Errorf("a record outside the zone: %v", err)
	}
	if err := client.PutRecord(t.Context(),
		api.Record{
			FQDN: "API.garden.local.trellis.garden", Type: "A", Values: []string{"10.0.0.1"},
		}); !api.IsInvalid(err) {
		t.Errorf("a client changes the operator's record: %v", err)
	}
	if err := client.DeleteRecord(t.Context(), "api.garden.local.trellis.garden"); !api.IsInvalid(err) {
		t.Errorf("a client deletes the operator's record: %v", err)
	}
	restarted, _, _ := newCloud(t, dir)
	resolver := &resolver{records: restarted.records}
	for _, test := range []struct {
		name    string
		qtype   uint16
		rcode   int
		answers string
	}{
		{"API.x.demo.local.trellis.garden.", dns.TypeA, dns.RcodeSuccess, "172.18.0.2"},
		{"api.x.demo.local.trellis.garden.", dns.TypeAAAA, dns.RcodeSuccess, ""},
		{"a.ingress.local.trellis.garden.", dns.TypeA, dns.RcodeSuccess, "api.x.demo.local.trellis.garden. 172.18.0.2"},
		{"text.local.trellis.garden.", dns.TypeTXT, dns.RcodeSuccess, "a b"},
		{"x.demo.local.trellis.garden.", dns.TypeA, dns.RcodeSuccess, ""},
		{"api.garden.local.trellis.garden.", dns.TypeA, dns.RcodeSuccess, "172.18.0.2"},
		{"nothing.local.trellis.garden.", dns.TypeA, dns.RcodeNameError, ""},
		{"registry.example.com.", dns.TypeA, dns.RcodeNameError, ""},
	} {
		request := new(dns.Msg).SetQuestion(test.name, test.qtype)
		reply := resolver.answer(request, "udp")
		var answers []string
		for _, rr := range reply.Answer {
			switch rr := rr.(type) {
			case *dns.A:
				answers = append(answers, rr.A.String())
			case *dns.CNAME:
				answers = append(answers, rr.Target)
			case *dns.TXT:
				answers = append(answers, rr.Txt...)
			}
		}
		if reply.Rcode != test.rcode || strings.Join(answers, " ") != test.answers {
			t.Errorf("%s %s: got %s %q", test.name, dns.TypeToString[test.qtype], dns.RcodeToString[reply.Rcode],
				answers)
		}
	}
}
