package images

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
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

// Terminals have kubectl and a shell with what people type, run as nobody in particular, and need no other libraries.
func TestTheImageOfTerminals(t *testing.T) {
	b := builderOf(t, everything)
	busybox := filepath.Join(b.Cache, "rootfs/network/usr/bin/busybox")
	for _, path := range []string{busybox, b.bin(Kubectl)} {
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(path), 0o755))
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := b.terminalImage(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, config := filesOf(t, b.store, "ghcr.io/trellis-garden/terminal:dev")
	for _, needed := range []string{
		"etc/static", "bin/busybox", "bin/sh", "bin/date", "bin/sleep", "bin/vi", "usr/local/bin/kubectl",
	} {
		if !slices.Contains(files, needed) {
			t.Errorf("there is no %s among %v", needed, files)
		}
	}
	if config.User != nonRoot || !slices.Equal(config.Entrypoint, []string{"/bin/sh"}) {
		t.Errorf("it runs %v as %q", config.Entrypoint, config.User)
	}
	if b.vector["terminal"].Tag == "" {
		t.Error("the image vector does not have it")
	}
}
