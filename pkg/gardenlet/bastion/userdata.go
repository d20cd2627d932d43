package bastion

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// user is who logs in to bastions; it may do nothing but go on to the machines of the shoot.
const user = "gardener"

// userData is the script of the first boot: the owner of the key, and nobody else, may log in. The key is encoded, so
// that nothing in it is read by the shell.
func userData(publicKey string) string {
	key := base64.StdEncoding.EncodeToString([]byte(strings.TrimSpace(publicKey) + "\n"))
	return fmt.Sprintf(`#!/bin/bash
set -eu
id %[1]s >/dev/null 2>&1 || useradd --create-home --user-group --password '*' %[1]s
install -d -m 0700 -o %[1]s -g %[1]s /home/%[1]s/.ssh
echo %[2]s | base64 -d >/home/%[1]s/.ssh/authorized_keys
chown %[1]s:%[1]s /home/%[1]s/.ssh/authorized_keys
chmod 0600 /home/%[1]s/.ssh/authorized_keys
systemctl start ssh.service || systemctl start sshd.service
`, user, key)
}
