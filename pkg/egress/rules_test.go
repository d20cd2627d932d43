package egress

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func landscapeRules(t testing.TB) Rules {
	t.Helper()
	rules := Rules{Denied: prefixes("10.1.0.0/16", "10.2.0.0/16", "8.8.4.0/24")}
	for _, text := range []string{
		"10.0.0.0/8", "172.18.0.2/32:443", "[fd00:7::/64]:6443", "0.0.0.0/0", "10.1.7.7/32", "100.64.0.0/10",
		"fd00:ec2::/64", "169.254.0.0/16",
	} {
		allowance, err := ParseAllowance(text)
		if err != nil {
			t.Fatal(err)
		}
		rules.Allowed = append(rules.Allowed, allowance)
	}
	return rules
}

func TestDecideWithoutExceptions(t *testing.T) {
	for address, want := range map[string]string{
		"8.8.8.8": "", "1.1.1.1": "", "2606:4700:4700::1111": "", "::ffff:8.8.8.8": "", "64:ff9b::808:808": "",
		"10.0.0.1": "10.0.0.0/8", "172.16.0.1": "172.16.0.0/12", "172.31.255.255": "172.16.0.0/12", "172.32.0.1": "",
		"192.168.1.1": "192.168.0.0/16",
		"127.0.0.1":   "127.0.0.0/8", "127.255.0.3": "127.0.0.0/8", "0.0.0.0": "0.0.0.0/8", "0.1.2.3": "0.0.0.0/8",
		"169.254.1.1": "169.254.0.0/16", "169.254.169.254": "169.254.169.254/32", "100.64.0.1": "100.64.0.0/10",
		"100.100.100.200": "100.100.100.200/32", "100.128.0.1": "",
		"198.18.0.1": "198.18.0.0/15", "203.0.113.1": "203.0.113.0/24", "192.0.2.1": "192.0.2.0/24",
		"192.0.0.1": "192.0.0.0/24", "192.0.0.192": "192.0.0.192/32", "168.63.129.16": "168.63.129.16/32",
		"224.0.0.1": "224.0.0.0/4", "240.0.0.1": "240.0.0.0/4", "255.255.255.255": "240.0.0.0/4",
		"::": "::/3", "::1": "::/3", "fe80::1": "8000::/1", "fe80::1%eth0": "one link", "fd00:ec2::1": "8000::/1",
		"fd00:ec2::254": "fd00:ec2::254/128", "fec0::1": "8000::/1", "ff02::1": "8000::/1",
		"::ffff:169.254.169.254": "169.254.169.254/32", "::ffff:127.0.0.1": "127.0.0.0/8", "::127.0.0.1": "::/3",
		"64:ff9b::a9fe:a9fe": "169.254.169.254/32", "64:ff9b::a83f:8110": "168.63.129.16/32",
		"64:ff9b::7f00:1": "127.0.0.0/8", "64:ff9b:1::a9fe:a9fe": "::/3",
		"2002:7f00:1::": "2002::/16", "2001:0:7f00:1::": "2001::/23", "2001:db8::1": "2001:db8::/32",
		"2001:2::1": "2001::/23", "3fff::1": "3fff::/20", "5f00::1": "4000::/2",
	} {
		got, err := Rules{}.Decide([]netip.Addr{netip.MustParseAddr(address)}, 443)
		if want == "" && (err != nil || got != netip.MustParseAddr(address).Unmap()) {
			t.Errorf("%s: got %v, %v, want it to be reached", address, got, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want) || got.IsValid()) {
			t.Errorf("%s: got %v, %v, want a refusal for %s", address, got, err, want)
		}
	}
}

func TestTheLongestNetworkDecides(t *testing.T) {
	rules := landscapeRules(t)
	for _, test := range []struct {
		address string
		port    uint16
		reached bool
	}{
		{"10.9.0.1", 80, true},
		{"10.1.0.5", 80, false}, // the seed's pods, though 10.0.0.0/8 is allowed
		{"10.1.7.7", 80, true},  // named by the operator
		{"172.18.0.2", 443, true},
		{"172.18.0.2", 6443, false},
		{"172.18.0.3", 443, false},
		{"::ffff:172.18.0.2", 443, true},
		{"64:ff9b::ac12:2", 443, true},
		{"0.0.0.1", 80, false}, // 0.0.0.0/0 opens nothing special
		{"100.64.0.1", 80, true},
		{"100.100.100.200", 80, false}, // a service for metadata, in a network that is allowed
		{"169.254.169.254", 80, false},
		{"fd00:ec2::254", 80, false},
		{"168.63.129.16", 80, false},
		{"127.0.0.1", 80, false},
		{"8.8.4.4", 443, false}, // public, and the seed's
		{"8.8.8.8", 443, true},
		{"fd00:7::1", 6443, true},
		{"fd00:7::1", 443, false},
		{"8.8.8.8", 0, false},
	} {
		_, err := rules.Decide([]netip.Addr{netip.MustParseAddr(test.address)}, test.port)
		if (err == nil) != test.reached {
			t.Errorf("%s:%d: got %v, want reached = %v", test.address, test.port, err, test.reached)
		}
	}
}

// Of a name with several addresses, one that may be reached is dialled, and no other one.
func TestDecideChooses(t *testing.T) {
	addresses := []netip.Addr{
		netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::ffff:8.8.8.8"), netip.MustParseAddr("1.1.1.1"),
	}
	if got, err := (Rules{}).Decide(addresses, 443); err != nil || got.String() != "8.8.8.8" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := (Rules{}).Decide(nil, 443); err == nil {
		t.Error("a name without addresses was let through")
	}
	if _, err := (Rules{}).Decide([]netip.Addr{{}}, 443); err == nil {
		t.Error("no address was let through")
	}
}

func TestParseAllowance(t *testing.T) {
	for text, want := range map[string]string{
		"10.9.0.0/16": "10.9.0.0/16 0", "10.9.1.1/16": "10.9.0.0/16 0", "10.9.0.7/32:443": "10.9.0.7/32 443",
		"[fd00::7/128]:443": "fd00::7/128 443", "fd00::/64": "fd00::/64 0",
		"10.9.0.7": "", "example.com": "", "10.9.0.7/32:70000": "", "10.9.0.7/33": "", "": "",
	} {
		got, err := ParseAllowance(text)
		if (err == nil) != (want != "") || err == nil && want != fmt.Sprintf("%s %d", got.Network, got.Port) {
			t.Errorf("%q: got %v, %v, want %s", text, got, err, want)
		}
	}
}

// Whatever the bytes, an address that is dialled is public, or in a network that the operator listed and nobody denied
// more closely.
func FuzzDecide(f *testing.F) {
	for _, seed := range []string{
		"8.8.8.8", "127.0.0.1", "::ffff:10.1.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "fd00:7::1", "172.18.0.2",
	} {
		f.Add(netip.MustParseAddr(seed).AsSlice(), uint16(443))
	}
	rules := landscapeRules(f)
	f.Fuzz(func(t *testing.T, bytes []byte, port uint16) {
		address, ok := netip.AddrFromSlice(bytes)
		if !ok {
			return
		}
		got, err := rules.Decide([]netip.Addr{address}, port)
		if err != nil {
			return
		}
		if got != address.Unmap() {
			t.Fatalf("asked for %s, would dial %s", address, got)
		}
		if got.IsLoopback() || got.IsUnspecified() || got.IsMulticast() || got.IsLinkLocalUnicast() || port == 0 {
			t.Fatalf("would dial %s:%d", got, port)
		}
		if v4 := judged(got); v4.IsPrivate() && !netip.MustParsePrefix("10.0.0.0/8").Contains(v4) &&
			v4 != netip.MustParseAddr("172.18.0.2") && !netip.MustParsePrefix("fd00:7::/64").Contains(v4) {
			t.Fatalf("would dial %s, which is private", got)
		}
		if v4 := judged(got); netip.MustParsePrefix("10.1.0.0/16").Contains(v4) &&
			v4 != netip.MustParseAddr("10.1.7.7") {
			t.Fatalf("would dial %s, which is the seed's", got)
		}
	})
}
