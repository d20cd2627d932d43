package outside

import "testing"

// The addresses of members are looked at when their names have been resolved.
func TestAttackMetadataAsAMember(t *testing.T) {
	for address, allowed := range map[string]bool{
		"169.254.169.254:443": false, "[::ffff:169.254.169.254]:443": false, "[64:ff9b::a9fe:a9fe]:443": false, "[fe80::1%25eth0]:443": false, "[fe80::1]:443": false,
		"[fd00:ec2::254]:443": false, "100.100.100.200:80": false, "0.0.0.0:6443": false, "[::]:6443": false, "224.0.0.1:1": false, "nonsense": false,
		"10.0.0.1:6443": true, "[2001:db8::1]:6443": true, "127.0.0.1:6443": true, "192.168.1.1:443": true, "[64:ff9b::808:808]:443": true,
	} {
		if err := checkAddress(address); (err == nil) != allowed {
			t.Errorf("%s: got %v", address, err)
		}
	}
}
