// Package bastionaccess is what the user data of bastions says: who may log in, and with which key a bastion proves
// that it is the one that was asked for. gardenlet writes it. Bastions that boot a machine image run it as a script,
// and extensions whose bastions are no machines read it.
package bastionaccess

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	// User is who logs in to bastions, to go on from there.
	User = "gardener"

	pathAuthorizedKeys = "/home/" + User + "/.ssh/authorized_keys"
	pathHostKey        = "/etc/ssh/ssh_host_ed25519_key"

	// restrictions begin the lines of authorized_keys: no shell, no command, nothing but connections through the
	// bastion.
	restrictions = `restrict,port-forwarding,command="/bin/false"`
)

// Access says who may use a bastion, and what it proves itself with.
type Access struct {
	// AuthorizedKey is the public key of the user, a line of authorized_keys.
	AuthorizedKey string
	// HostKey is the private key of the bastion, as PEM in OpenSSH's format.
	HostKey []byte
}

// New is access for a public key to a bastion with a new key of its own.
func New(authorizedKey string) (Access, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Access{}, fmt.Errorf("generating the key of a bastion: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return Access{}, fmt.Errorf("encoding the key of a bastion: %w", err)
	}
	return Access{AuthorizedKey: strings.TrimSpace(authorizedKey), HostKey: pem.EncodeToMemory(block)}, nil
}

// script makes a machine a bastion at its first boot: the owner of the key, and nobody else, may go through it. What
// comes from others is encoded, so that nothing in it is read by the shell.
const script = `#!/bin/bash
set -eu
id %[1]s >/dev/null 2>&1 || useradd --create-home --user-group --password '*' %[1]s
install -d -m 0700 -o %[1]s -g %[1]s /home/%[1]s/.ssh
echo %[2]s | base64 -d >%[3]s
chown %[1]s:%[1]s %[3]s
chmod 0600 %[3]s
rm -f /etc/ssh/ssh_host_*_key /etc/ssh/ssh_host_*_key.pub
install -m 0600 /dev/null %[5]s
echo %[4]s | base64 -d >%[5]s
systemctl restart ssh.service || systemctl restart sshd.service
`

// UserData is the script of the first boot.
func (a Access) UserData() []byte {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, script, User, encode([]byte(restricted(a.AuthorizedKey)+"\n")), pathAuthorizedKeys,
		encode(a.HostKey), pathHostKey)
}

// restricted puts the restrictions before each line. Options that the user has put before the key are kept behind them:
// OpenSSH refuses the key where they contradict each other.
func restricted(keys string) string {
	lines := strings.Split(keys, "\n")
	for i, line := range lines {
		separator := " "
		if _, _, options, _, err := ssh.ParseAuthorizedKey([]byte(line)); err == nil && len(options) > 0 {
			separator = ","
		}
		lines[i] = restrictions + separator + line
	}
	return strings.Join(lines, "\n")
}

// unrestricted is what restricted was given.
func unrestricted(keys string) string {
	lines := strings.Split(keys, "\n")
	for i, line := range lines {
		if key, cut := strings.CutPrefix(line, restrictions); cut && key != "" && strings.ContainsAny(key[:1], " ,") {
			lines[i] = key[1:]
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// HostKeys are the public keys of the bastion, as in known_hosts but without a host.
func (a Access) HostKeys() ([]string, error) {
	signer, err := a.Signer()
	if err != nil {
		return nil, err
	}
	return []string{strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))}, nil
}

// Signer is the key that the bastion proves itself with.
func (a Access) Signer() (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(a.HostKey)
	if err != nil {
		return nil, fmt.Errorf("reading the key of a bastion: %w", err)
	}
	return signer, nil
}

// PublicKey is the key of the user.
func (a Access) PublicKey() (ssh.PublicKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(a.AuthorizedKey))
	if err != nil {
		return nil, fmt.Errorf("reading the public key of a bastion's user: %w", err)
	}
	return key, nil
}

// written finds what a script writes, and where.
var written = regexp.MustCompile(`(?m)^echo ([A-Za-z0-9+/=]+) \| base64 -d >(\S+)$`)

// Parse reads user data that UserData has made.
func Parse(userData []byte) (Access, error) {
	var access Access
	for _, match := range written.FindAllSubmatch(userData, -1) {
		content, err := base64.StdEncoding.DecodeString(string(match[1]))
		if err != nil {
			return Access{}, fmt.Errorf("user data of a bastion: content of %s: %w", match[2], err)
		}
		switch string(match[2]) {
		case pathAuthorizedKeys:
			access.AuthorizedKey = unrestricted(string(content))
		case pathHostKey:
			access.HostKey = content
		}
	}
	if access.AuthorizedKey == "" || len(access.HostKey) == 0 {
		return Access{}, errors.New("user data of a bastion: the user's public key or the bastion's own is missing; " +
			"gardenlet writes both")
	}
	return access, nil
}
