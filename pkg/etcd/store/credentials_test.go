package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
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

func TestSettingsInASecret(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  S3Options
		wrong bool
	}{
		{"all", map[string]string{
			"endpoint": "https://s3.example.com\n", "region": "here", "s3ForcePathStyle": "true",
			"trustedCaCert": "PEM\n", "serverSideEncryption": "AES256",
		}, S3Options{
			Endpoint: "https://s3.example.com", Region: "here", PathStyle: true, CA: []byte("PEM"), Encryption: AES256,
		}, false},
		{"a region", map[string]string{"region": "eu-central-1"}, S3Options{
			Endpoint: "https://s3.eu-central-1.amazonaws.com", Region: "eu-central-1", CA: []byte{},
		}, false},
		{"neither endpoint nor region", nil, S3Options{}, true},
		{"a style that is none", map[string]string{"region": "here", "s3ForcePathStyle": "perhaps"}, S3Options{}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, test.files)
			got, err := S3OptionsIn(dir)
			got.Credentials = nil
			if (err != nil) != test.wrong || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
