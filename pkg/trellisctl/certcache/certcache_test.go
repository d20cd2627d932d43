package certcache

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

func mine(fs.FileInfo) bool { return true }

// until is a certificate that ends then.
func until(t *testing.T, end time.Time) Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: end}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return Certificate{
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})),
		Key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	}
}

// folder is one that can hold a cache: tests' own may be open to the group.
func folder(t *testing.T) string {
	t.Helper()
	parent := filepath.Join(t.TempDir(), "parent")
	if err := os.Mkdir(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(parent, "cache")
}

func opened(t *testing.T, dir string) *Cache {
	t.Helper()
	cache, err := Open(dir, mine)
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

func TestCertificatesAreKeptUntilShortlyBeforeTheirEnd(t *testing.T) {
	end := now.Add(10 * time.Minute)
	kept := until(t, end)
	cache := opened(t, folder(t))
	if err := cache.Put("k", kept, now); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		key  string
		at   time.Time
		want bool
	}{
		"at once":               {"k", now, true},
		"just before":           {"k", end.Add(-Margin - time.Second), true},
		"when it is soon ended": {"k", end.Add(-Margin), false},
		"after its end":         {"k", end.Add(time.Hour), false},
		"of another key":        {"l", now, false},
	} {
		got, found, err := cache.Get(test.key, test.at)
		if err != nil || found != test.want || (found && got != kept) {
			t.Errorf("%s: got %v, %v", name, found, err)
		}
	}
}

func TestFilesAreForTheirUserOnly(t *testing.T) {
	dir := folder(t)
	cache := opened(t, dir)
	if err := cache.Put("k", until(t, now.Add(time.Hour)), now); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, "k.json"): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got %v, %v", path, info.Mode().Perm(), err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v", entries, err)
	}
}

// What is there and cannot be used is replaced, and is no error.
func TestBrokenFilesAreReplaced(t *testing.T) {
	dir := folder(t)
	cache := opened(t, dir)
	other := until(t, now.Add(time.Hour))
	good := until(t, now.Add(time.Hour))
	mixed := `{"certificate":` + quoted(good.Certificate) + `,"key":` + quoted(other.Key) + `}`
	for name, content := range map[string]string{"no JSON": "{", "nothing": "{}", "another key": mixed} {
		if err := os.WriteFile(filepath.Join(dir, "k.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, found, err := cache.Get("k", now); found || err != nil {
			t.Errorf("%s: got %v, %v", name, found, err)
		}
		if err := cache.Put("k", good, now); err != nil {
			t.Fatal(err)
		}
		if got, found, err := cache.Get("k", now); !found || err != nil || got != good {
			t.Errorf("%s, replaced: got %v, %v", name, found, err)
		}
	}
}

func quoted(text string) string { return `"` + strings.ReplaceAll(text, "\n", `\n`) + `"` }

func TestOldFilesGo(t *testing.T) {
	dir := folder(t)
	cache := opened(t, dir)
	for _, name := range []string{"old.json", ".new-x", "somebody's"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(-maxAge-time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if err := cache.Put("k", until(t, now.Add(time.Hour)), now); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 || entries[0].Name() != "k.json" || entries[1].Name() != "somebody's" {
		t.Errorf("got %v, %v", entries, err)
	}
}

func TestKeysDiffer(t *testing.T) {
	same := []string{Key("a"), Key("a")}
	if Key("a", "bc") == Key("ab", "c") || Key("a") == Key("a", "") || same[0] != same[1] {
		t.Error("keys of different things are the same, or the other way round")
	}
}

// Another user of the machine makes the folder or a file before its owner does, or may read or write them.
func TestAttackCachedCertificates(t *testing.T) {
	for name, prepare := range map[string]func(dir string) error{
		"a folder that others may write to": func(dir string) error { return makeDir(dir, 0o777) },
		"a folder that others may read":     func(dir string) error { return makeDir(dir, 0o750) },
		"a folder in one of others":         func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) },
		"a link to a folder":                func(dir string) error { return os.Symlink(t.TempDir(), dir) },
	} {
		dir := folder(t)
		if err := prepare(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, mine); err == nil || !strings.Contains(err.Error(), "holds keys") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Open(folder(t), func(fs.FileInfo) bool { return false }); err == nil {
		t.Error("a folder of somebody else is accepted")
	}
	dir := folder(t)
	cache := opened(t, dir)
	if err := cache.Put("k", until(t, now.Add(time.Hour)), now); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "k.json")
	if err := os.Symlink(path, filepath.Join(dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	if _, found, err := cache.Get("link", now); found || err == nil {
		t.Errorf("a link: got %v, %v", found, err)
	}
	for _, mode := range []fs.FileMode{0o640, 0o602} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, found, err := cache.Get("k", now); found || err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("mode %o: got %v, %v", mode, found, err)
		}
	}
}

// makeDir has the mode whatever the umask is.
func makeDir(dir string, mode fs.FileMode) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, mode)
}
