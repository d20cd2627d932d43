package nodeagent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sshHostKeyPatterns are where machines have the public keys of their SSH daemon: where the daemon looks by default,
// and where they outlive a reboot of machines whose root file system does not.
var sshHostKeyPatterns = []string{"/etc/ssh/ssh_host_*_key.pub", "/var/lib/node-agent/ssh_host_*_key.pub"}

// sshHostKeys are the public keys with which the machine proves itself by SSH, one a line and as in known_hosts but
// without a host; empty where it has none.
func (m *machine) sshHostKeys() (string, error) {
	var keys []string
	for _, pattern := range sshHostKeyPatterns {
		paths, err := filepath.Glob(m.path(pattern))
		if err != nil {
			return "", err
		}
		for _, path := range paths {
			line, err := os.ReadFile(path)
			if err != nil {
				return "", fmt.Errorf("key of the SSH daemon: %w", err)
			}
			// What follows the key is a comment.
			if fields := strings.Fields(string(line)); len(fields) >= 2 {
				keys = append(keys, fields[0]+" "+fields[1])
			}
		}
	}
	slices.Sort(keys)
	return strings.Join(slices.Compact(keys), "\n"), nil
}
