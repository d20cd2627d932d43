package vpn_test

import (
	"net/netip"
	"testing"

	"github.com/trellis-garden/trellis/pkg/vpn"
)

func TestSources(t *testing.T) {
	cases := map[string]string{
		"192.0.2.1":               "192.0.2.1/32",
		"::ffff:192.0.2.1":        "192.0.2.1/32",
		"2001:db8:1:2:3:4:5:6":    "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::":     "2001:db8:1:2::/64",
		"fe80::1%eth0":            "fe80::/64",
		"2001:db8:1:3::192.0.2.1": "2001:db8:1:3::/64",
	}
	for address, want := range cases {
		if got := vpn.SourceOf(netip.AddrPortFrom(netip.MustParseAddr(address), 4711)).String(); got != want {
			t.Errorf("%s counts as %s, want %s", address, got, want)
		}
	}
}
