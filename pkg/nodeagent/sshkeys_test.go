package nodeagent

import (
	"os"
	"path/filepath"
	"testing"
)

func (m *machine) mustWrite(t *testing.T, path, content string) {
	t.Helper()
	path = m.path(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Public keys of both places are told, and nothing else of what lies there.
func TestKeysOfTheMachine(t *testing.T) {
	m, _ := testMachine(t)
	if keys, err := m.sshHostKeys(); err != nil || keys != "" {
		t.Errorf("without a daemon: %q, %v", keys, err)
	}
	for path, content := range map[string]string{
		"/etc/ssh/ssh_host_rsa_key": "PRIVATE KEY", "/etc/ssh/ssh_host_rsa_key.pub": "ssh-rsa AAAA root@m1\n",
		"/etc/ssh/ssh_host_dsa_key.pub": "\n", "/etc/ssh/other.pub": "ssh-rsa CCCC\n",
		"/var/lib/node-agent/ssh_host_ed25519_key.pub": "ssh-ed25519 BBBB\n",
	} {
		m.mustWrite(t, path, content)
	}
	if keys, err := m.sshHostKeys(); err != nil || keys != "ssh-ed25519 BBBB\nssh-rsa AAAA" {
		t.Errorf("got %q, %v", keys, err)
	}
}
