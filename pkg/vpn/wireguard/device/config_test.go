package device

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

func TestUAPI(t *testing.T) {
	config := Config{
		PrivateKey: wgtypes.Key{1}, ListenPort: 51820,
		Peer: Peer{
			PublicKey: wgtypes.Key{2}, Endpoint: netip.MustParseAddrPort("[fd00::1]:51820"),
			Keepalive:  12 * time.Second,
			AllowedIPs: []netip.Prefix{netip.MustParsePrefix("10.3.0.0/16"), netip.MustParsePrefix("fd00::/64")},
		},
	}
	want := "private_key=01" + strings.Repeat("00", 31) + "\nlisten_port=51820\n" +
		"replace_peers=true\npublic_key=02" + strings.Repeat("00", 31) + "\nreplace_allowed_ips=true\n" +
		"allowed_ip=10.3.0.0/16\nallowed_ip=fd00::/64\nendpoint=[fd00::1]:51820\npersistent_keepalive_interval=12\n"
	if got := config.uapi(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestParseStats(t *testing.T) {
	stats, err :=
		parseStats("public_key=00\nlast_handshake_time_sec=1700000000\nlast_handshake_time_nsec=5\ntx_bytes=7\n" +
			"rx_bytes=8\n")
	want := transport.Stats{
		LastHandshake: time.Unix(1_700_000_000, 5), HandshakeExpiry: 3 * time.Minute, SentBytes: 7, ReceivedBytes: 8,
	}
	if err != nil || stats != want {
		t.Errorf("got %+v, %v; want %+v", stats, err, want)
	}
	if stats, err := parseStats("last_handshake_time_sec=0\nlast_handshake_time_nsec=0\n"); err != nil ||
		!stats.LastHandshake.IsZero() {
		t.Errorf("without a handshake: got %+v, %v", stats, err)
	}
	if _, err := parseStats("rx_bytes=many\n"); err == nil {
		t.Error("text was accepted as a number")
	}
}
