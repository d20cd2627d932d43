package images

import (
	"os"
	"path/filepath"
	"testing"
)

// Nobody gets into a machine before node-agent knows who may, and no two machines have the same key.
func TestSSHIsClosedInTheImage(t *testing.T) {
	dir := t.TempDir()
	stays := map[string]bool{
		"etc/ssh/sshd_config": true, "lib/systemd/system/ssh.service": true,
		"etc/systemd/system/multi-user.target.wants/containerd.service": true, "etc/ssh/ssh_host_rsa_key": false,
		"etc/ssh/ssh_host_ed25519_key.pub": false, "etc/systemd/system/multi-user.target.wants/ssh.service": false,
		"etc/systemd/system/sockets.target.wants/ssh.socket": false, "etc/systemd/system/sshd.service": false,
	}
	files := map[string]string{}
	for name := range stays {
		files[name] = "x"
	}
	if err := writeFiles(dir, files); err != nil {
		t.Fatal(err)
	}
	if err := finishMachine(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range stays {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
