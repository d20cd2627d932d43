package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// contents are the files of an archive.
func contents(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	result := map[string]string{}
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return result
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := result[header.Name]; twice || header.Mode != 0o600 || header.Typeflag != tar.TypeReg {
			t.Errorf("%s: twice: %v, mode %o", header.Name, twice, header.Mode)
		}
		result[header.Name] = string(text)
	}
}

func written(t *testing.T, limit int64, fill func(*Archive) error) map[string]string {
	t.Helper()
	var out bytes.Buffer
	archive := New(&out, "report", limit, now)
	if err := errors.Join(fill(archive), archive.Close()); err != nil {
		t.Fatal(err)
	}
	return contents(t, out.Bytes())
}

func TestAllIsRedacted(t *testing.T) {
	got := written(t, 1000, func(a *Archive) error {
		a.Missing("seed", errors.New("no access with\ntoken=hunter2"))
		return errors.Join(
			a.Object(map[string]any{"kind": "Pod", "spec": map[string]any{"password": "hunter2"}}, "pods", "a.yaml"),
			a.Text("login with password=hunter2", "logs", "a.log"))
	})
	want := map[string]string{
		"report/pods/a.yaml": "---\nkind: Pod\nspec:\n  password: '[redacted]'\n",
		"report/logs/a.log":  "login with password=[redacted]",
		"report/missing.txt": "seed: no access with token=[redacted]\n",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestNothingMissing(t *testing.T) {
	got := written(t, 1000, func(*Archive) error { return nil })
	if !maps.Equal(got, map[string]string{"report/missing.txt": "Nothing is missing.\n"}) {
		t.Errorf("got %q", got)
	}
}

// What is too large is left out and told; what comes after it and fits is there.
func TestSizesAreBounded(t *testing.T) {
	got := written(t, 10, func(a *Archive) error {
		return errors.Join(a.Text("four", "a"), a.Text("seven..", "b"), a.Text("six...", "c"), a.Text("x", "d"))
	})
	if got["report/a"] != "four" || got["report/c"] != "six..." || len(got) != 3 ||
		strings.Count(got["report/missing.txt"], "are left of the archive's size") != 2 {
		t.Errorf("got %q", got)
	}
}

// A server names its pods so that files land elsewhere where the archive is unpacked, or replace others.
func TestAttackNamesInTheArchive(t *testing.T) {
	names := []string{
		"../../etc/cron.d/x", "..", ".", "", "/etc/passwd", `..\..\x`, "a\x00b", "a\nb", "missing.txt", "missing.txt",
		strings.Repeat("long", 100),
	}
	got := written(t, 1000, func(a *Archive) error {
		var errs []error
		for _, name := range names {
			errs = append(errs, a.Text("x", name), a.Text("x", "logs", name))
		}
		return errors.Join(errs...)
	})
	if len(got) != 2*len(names)+1 {
		t.Errorf("got %d files: %q", len(got), slices.Sorted(maps.Keys(got)))
	}
	for name := range got {
		if path.Clean(name) != name || !strings.HasPrefix(name, "report/") || strings.ContainsAny(name, "\\\x00\n") {
			t.Errorf("got %q", name)
		}
	}
	found := 0
	for _, text := range got {
		if text == "Nothing is missing.\n" {
			found++
		}
	}
	if found != 1 {
		t.Errorf("what is missing is told %d times", found)
	}
}
