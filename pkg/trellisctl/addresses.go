package trellisctl

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// addressFor picks one of the addresses for a host, the first that no other host has. The folder remembers whose they
// are: it has a file per address in use, whose content is the host. Where it cannot be written, hosts may share an
// address, which is inconvenient, but works.
func addressFor(dir, host string, addresses []string) string {
	for _, address := range addresses {
		owner, err := os.ReadFile(addressFile(dir, address))
		if err != nil {
			break // Hosts take the first one that is free, so theirs is not behind it.
		}
		if string(owner) == host {
			use(dir, address)
			return address
		}
	}
	if address, err := claim(dir, host, addresses); err == nil {
		return address
	}
	return addresses[0]
}

// use notes when an address was of use, which matters once all are taken.
func use(dir, address string) {
	now := time.Now()
	_ = os.Chtimes(addressFile(dir, address), now, now)
}

// claim gives the host the first address that is free, or else the one that was not used for longest. Files appear with
// their content and only once, so no process takes what another one has just taken.
func claim(dir, host string, addresses []string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	note := filepath.Join(dir, ".new-"+rand.Text())
	if err := os.WriteFile(note, []byte(host), 0o644); err != nil {
		return "", err
	}
	defer os.Remove(note)
	for _, address := range addresses {
		err := os.Link(note, addressFile(dir, address))
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return address, err
		}
		if owner, err := os.ReadFile(addressFile(dir, address)); err != nil || string(owner) == host {
			return address, err
		}
	}
	address, err := longestUnused(dir, addresses)
	if err != nil {
		return "", err
	}
	return address, os.Rename(note, addressFile(dir, address))
}

// longestUnused is the address whose file is the oldest.
func longestUnused(dir string, addresses []string) (string, error) {
	var oldest string
	var since time.Time
	for _, address := range addresses {
		info, err := os.Stat(addressFile(dir, address))
		if err != nil {
			return "", err
		}
		if oldest == "" || info.ModTime().Before(since) {
			oldest, since = address, info.ModTime()
		}
	}
	return oldest, nil
}

// addressFile is the file of an address, which has colons where some systems allow none in names.
func addressFile(dir, address string) string {
	return filepath.Join(dir, strings.ReplaceAll(address, ":", "_"))
}
