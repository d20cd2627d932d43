package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func openDirectory(t *testing.T, dir string) *Directory {
	t.Helper()
	d, err := NewDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestDirectoryRemovesWhatACrashLeft(t *testing.T) {
	dir := t.TempDir()
	day := time.Now().Add(-abandoned)
	for name, modified := range map[string]time.Time{
		"full.A.part": day.Add(-time.Hour), "full.B.part": day.Add(time.Hour), "full": day.Add(-time.Hour),
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, modified, modified)); err != nil {
			t.Fatal(err)
		}
	}
	openDirectory(t, dir)
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	if got := strings.Join(left, " "); got != "full full.B.part" {
		t.Errorf("left are %s", got)
	}
}

func TestDirectoryGivesOutNoLinksToOtherPlaces(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(outside, []byte("secret"), 0o600),
		os.Symlink(outside, filepath.Join(dir, "a"))); err != nil {
		t.Fatal(err)
	}
	d := openDirectory(t, dir)
	if _, err := d.Get(t.Context(), "a"); err == nil {
		t.Error("a file outside of the directory is opened")
	}
}

func TestDirectoryThatIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewDirectory(path); err == nil {
		t.Error("a file is taken for a directory")
	}
}

func TestReasonsOfTheOperatingSystem(t *testing.T) {
	for cause, want := range map[error]error{
		syscall.ENOSPC: ErrFull,
		syscall.EDQUOT: ErrFull,
		syscall.EACCES: ErrPermission,
		syscall.EROFS:  ErrPermission,
		syscall.ENOENT: ErrNotFound,
	} {
		err := reasoned(fmt.Errorf("putting a: %w", &os.PathError{Op: "open", Path: "a", Err: cause}))
		if !errors.Is(err, want) || !errors.Is(err, cause) {
			t.Errorf("%v: got %v, want %v", cause, err, want)
		}
	}
	for _, reason := range []error{ErrNotFound, ErrPermission, ErrFull, ErrImmutable} {
		if errors.Is(reasoned(syscall.EIO), reason) {
			t.Errorf("an error of the disk is taken for %v", reason)
		}
	}
}
