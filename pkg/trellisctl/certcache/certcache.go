// Package certcache keeps short-lived client certificates in files that nobody but their user may read or write. It
// knows nothing of where they come from.
package certcache

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Margin is how long before its end a certificate is not handed out any more: what is begun with it should end in time,
// and clocks differ.
const Margin = 2 * time.Minute

// maxAge is after how long files are removed: no certificate is valid for longer.
const maxAge = 25 * time.Hour

// maxSize bounds what is read of a file.
const maxSize = 1 << 20

// Certificate is a client certificate with its key, both in PEM.
type Certificate struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

// NotAfter is when the certificate ends. An error means that certificate and key do not belong together, or are none.
func (c Certificate) NotAfter() (time.Time, error) {
	pair, err := tls.X509KeyPair([]byte(c.Certificate), []byte(c.Key))
	if err != nil {
		return time.Time{}, err
	}
	return pair.Leaf.NotAfter, nil
}

// Cache is a folder of certificates.
type Cache struct {
	dir   string
	owned func(fs.FileInfo) bool
}

// Open makes the folder if it is not there. One that others may write to is refused, and so is one in a folder of that
// kind. owned says whether a file belongs to the user.
func Open(dir string, owned func(fs.FileInfo) bool) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for path, forbidden := range map[string]fs.FileMode{dir: 0o077, filepath.Dir(dir): 0o022} {
		info, err := os.Lstat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() || OpenTo(info, forbidden) || !owned(info) {
			return nil, fmt.Errorf("%s (mode %04o) holds keys, and must be a folder of yours that others keep out of: "+
				"`chmod go-rwx` it, or remove it and try again", path, info.Mode().Perm())
		}
	}
	return &Cache{dir: dir, owned: owned}, nil
}

// OpenTo says whether others have one of these permissions to a file. Windows has no such permissions: what lies in the
// folders of a user is that user's there.
func OpenTo(info fs.FileInfo, permissions fs.FileMode) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&permissions != 0
}

// Key is the name under which a certificate is kept: what it is good for, part by part.
func Key(parts ...string) string {
	// As JSON, no two lists of parts are the same text.
	text, _ := json.Marshal(parts)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Get returns the certificate of a key, unless there is none or it is about to end. A file that others may write or
// read is an error, because somebody may have put it there, or may have the key.
func (c *Cache) Get(key string, now time.Time) (Certificate, bool, error) {
	path := c.path(key)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Certificate{}, false, nil
	}
	if err != nil {
		return Certificate{}, false, err
	}
	if !info.Mode().IsRegular() || OpenTo(info, 0o077) || !c.owned(info) {
		return Certificate{}, false, fmt.Errorf("%s (mode %04o) holds a key, and must be a file of yours that others "+
			"can neither read nor write: remove it, and try again", path, info.Mode().Perm())
	}
	if info.Size() > maxSize {
		return Certificate{}, false, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Certificate{}, false, err
	}
	var certificate Certificate
	if json.Unmarshal(text, &certificate) != nil {
		return Certificate{}, false, nil
	}
	end, err := certificate.NotAfter()
	if err != nil || !now.Add(Margin).Before(end) {
		return Certificate{}, false, nil
	}
	return certificate, true, nil
}

// Put keeps a certificate, and forgets those that have ended long ago. A file appears with all of its content.
func (c *Cache) Put(key string, certificate Certificate, now time.Time) error {
	c.prune(now)
	text, err := json.Marshal(certificate)
	if err != nil {
		return err
	}
	note := filepath.Join(c.dir, ".new-"+rand.Text())
	if err := writeNew(note, text); err != nil {
		return err
	}
	if err := os.Rename(note, c.path(key)); err != nil {
		os.Remove(note)
		return err
	}
	return nil
}

// writeNew writes a file that must not be there yet.
func writeNew(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		os.Remove(path)
		return err
	}
	return nil
}

// prune removes what is of no use; what it cannot remove stays.
func (c *Cache) prune(now time.Time) {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".json") && !strings.HasPrefix(entry.Name(), ".new-") {
			continue
		}
		if info, err := entry.Info(); err == nil && now.Sub(info.ModTime()) > maxAge {
			os.Remove(filepath.Join(c.dir, entry.Name()))
		}
	}
}

func (c *Cache) path(key string) string { return filepath.Join(c.dir, key+".json") }
