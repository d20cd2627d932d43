package outside

import (
	"net"
	"strings"
	"testing"
)

// The addresses of members are looked at when their names have been resolved.
func TestAttackMetadataAsAMember(t *testing.T) {
	for address, allowed := range map[string]bool{
		"169.254.169.254:443": false, "[::ffff:169.254.169.254]:443": false, "[64:ff9b::a9fe:a9fe]:443": false,
		"[fe80::1%25eth0]:443": false, "[fe80::1]:443": false,
		"[fd00:ec2::254]:443": false, "[fd20:ce::254]:80": false, "100.100.100.200:80": false, "192.0.0.192:80": false,
		"168.63.129.16:80": false, "0.0.0.0:6443": false, "[::]:6443": false, "224.0.0.1:1": false, "nonsense": false,
		"10.0.0.1:6443": true, "[2001:db8::1]:6443": true, "127.0.0.1:6443": true, "192.168.1.1:443": true,
		"[64:ff9b::808:808]:443": true,
	} {
		if err := checkAddress(address); (err == nil) != allowed {
			t.Errorf("%s: got %v", address, err)
		}
	}
	// What is dialled is looked at: these lead to this machine.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for _, host := range []string{"0.0.0.0", "::", "::ffff:0.0.0.0"} {
		conn, err := Direct(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			_ = conn.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "none of a cluster") {
			t.Errorf("connecting to %s: got %v", host, err)
		}
	}
}
