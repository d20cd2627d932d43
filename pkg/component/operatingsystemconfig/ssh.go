package operatingsystemconfig

import (
	"strings"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	// SSHUser is the user of machines that people log in as; it may become root.
	SSHUser = "gardener"
	// PathAuthorizedKeys holds the public keys of those who may.
	PathAuthorizedKeys = "/var/lib/worker-pool/authorized-keys"
	pathSSHScript      = "/var/lib/worker-pool/ssh-access"
	// UnitSSH turns access on or off.
	UnitSSH = "ssh-access.service"
)

// sshScript brings the machine into the state that the authorized keys ask for: with keys the user exists and the
// daemon runs, without any the daemon is off and whoever is logged in by SSH is logged out. Images without a daemon are
// closed anyway.
const sshScript = `#!/bin/sh
set -eu
keys=` + PathAuthorizedKeys + `
daemon=
# Debian calls it ssh, with sshd as an alias once it is enabled; others have sshd only.
for name in sshd ssh; do
  ! systemctl cat "$name.service" >/dev/null 2>&1 || daemon=$name
done
if [ ! -s "$keys" ]; then
  rm -rf /home/` + SSHUser + `/.ssh
  [ -n "$daemon" ] || exit 0
  systemctl disable --now "$daemon.service"
  systemctl disable --now "$daemon.socket" 2>/dev/null || true
  pkill -x sshd || true
  exit 0
fi
[ -n "$daemon" ] || exit 0
id ` + SSHUser + ` >/dev/null 2>&1 || useradd --create-home --shell /bin/bash --password '*' ` + SSHUser + `
install -d -m 0700 -o ` + SSHUser + ` -g ` + SSHUser + ` /home/` + SSHUser + `/.ssh
install -m 0600 -o ` + SSHUser + ` -g ` + SSHUser + ` "$keys" /home/` + SSHUser + `/.ssh/authorized_keys
if [ -d /etc/sudoers.d ]; then
  echo '` + SSHUser + ` ALL=(ALL) NOPASSWD:ALL' >/etc/sudoers.d/99-` + SSHUser + `
  chmod 0440 /etc/sudoers.d/99-` + SSHUser + `
fi
systemctl enable --now "$daemon.service"
`

const sshUnit = `[Unit]
Description=Access to the machine by SSH

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=` + pathSSHScript + `

[Install]
WantedBy=multi-user.target
`

// sshAccess returns what lets the owners of the keys in, and nobody where there are no keys.
func sshAccess(authorizedKeys []string) (extensionsv1alpha1.Unit, []extensionsv1alpha1.File) {
	var lines strings.Builder
	for _, key := range authorizedKeys {
		lines.WriteString(strings.TrimSpace(key) + "\n")
	}
	unit := extensionsv1alpha1.Unit{
		Name: UnitSSH, Enable: new(true), Command: new(extensionsv1alpha1.CommandRestart), Content: new(sshUnit),
		FilePaths: []string{PathAuthorizedKeys, pathSSHScript},
	}
	return unit, []extensionsv1alpha1.File{
		encoded(PathAuthorizedKeys, 0o644, []byte(lines.String())), encoded(pathSSHScript, 0o755, []byte(sshScript)),
	}
}
