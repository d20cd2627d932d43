package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCredentialsAreReadAnew(t *testing.T) {
	dir := t.TempDir()
	read := S3CredentialsIn(dir)
	if _, err := read(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no Secret is mounted: got %v", err)
	}
	write(t, dir, map[string]string{"accessKeyID": "one", "secretAccessKey": "first\n"})
	if got, err := read(); err != nil || got != (S3Credentials{AccessKeyID: "one", SecretAccessKey: "first"}) {
		t.Errorf("got %v, %v", got, err)
	}
	write(t, dir, map[string]string{"secretAccessKey": " "})
	if got, err := read(); err == nil {
		t.Errorf("an empty key is taken: %v", got)
	}
}

// The kubelet lays a new version beside the old one and exchanges a link.
func TestCredentialsAreOfOneVersion(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "..data")
	for _, version := range []string{"..1", "..2"} {
		write(t, filepath.Join(dir, version), map[string]string{
			"accessKeyID": "id" + version, "secretAccessKey": "secret" + version, "sessionToken": "token" + version,
		})
	}
	if err := os.Symlink("..1", link); err != nil {
		t.Fatal(err)
	}
	read := S3CredentialsIn(dir)
	want := func(version string) S3Credentials {
		return S3Credentials{"id" + version, "secret" + version, "token" + version}
	}
	if got, err := read(); err != nil || got != want("..1") {
		t.Errorf("got %v, %v", got, err)
	}
	if err := errors.Join(os.Remove(link), os.Symlink("..2", link)); err != nil {
		t.Fatal(err)
	}
	if got, err := read(); err != nil || got != want("..2") {
		t.Errorf("got %v, %v", got, err)
	}
}
