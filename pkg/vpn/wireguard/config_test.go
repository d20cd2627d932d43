package wireguard

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

func TestUAPI(t *testing.T) {
	config := Config{
		PrivateKey: wgtypes.Key{1}, ListenPort: 51820,
		Peer: Peer{
			PublicKey: wgtypes.Key{2}, Endpoint: netip.MustParseAddrPort("[fd00::1]:51820"), Keepalive: 12 * time.Second,
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
	stats, err := parseStats("public_key=00\nlast_handshake_time_sec=1700000000\nlast_handshake_time_nsec=5\ntx_bytes=7\nrx_bytes=8\n")
	want := Stats{LastHandshake: time.Unix(1_700_000_000, 5), SentBytes: 7, ReceivedBytes: 8}
	if err != nil || stats != want {
		t.Errorf("got %+v, %v; want %+v", stats, err, want)
	}
	if stats, err := parseStats("last_handshake_time_sec=0\nlast_handshake_time_nsec=0\n"); err != nil || !stats.LastHandshake.IsZero() {
		t.Errorf("without a handshake: got %+v, %v", stats, err)
	}
	if _, err := parseStats("rx_bytes=many\n"); err == nil {
		t.Error("text was accepted as a number")
	}
}

func TestReadKeyFile(t *testing.T) {
	key, err := wgtypes.GeneratePrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(key.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadKeyFile(path); got != key || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKeyFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a broken key: got %v, want an error that names the file", err)
	}
}
