package pages

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// A page that is not made any more is gone, what is no page stays, and the folder may be a new one.
func TestWrite(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "docs", "reference")
	for _, pages := range []map[string]string{{"a.md": "old", "b.md": "b"}, {"a.md": "new", "c.md": "c"}} {
		if err := Write(folder, pages); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "picture.svg"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[entry.Name()] = string(text)
	}
	if want := map[string]string{"a.md": "new", "c.md": "c", "picture.svg": ""}; !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestWhatIsNoFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(file, nil); err == nil {
		t.Error("a file is written to as if it were a folder")
	}
}
