package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const published = "# where these come from\ncore/v1.Thing metadata=1 name=4 kind=9\n"

const types = "package v1\n\n" +
	"// Thing is one.\ntype Thing struct {\n" +
	"\tmetav1.TypeMeta `json:\",inline\"`\n" +
	"\tmetav1.ObjectMeta `json:\"metadata,omitempty\"`\n" +
	"\t// Name is new here.\n\tName string `json:\"name\"`\n" +
	"\tOwn int `json:\"own\"`\n" +
	"\tv1.Base `json:\",inline\"`\n" +
	"\tHidden int `json:\"-\"`\n}\n\n" +
	"// +protobuf=false\n\n// Config is read from a file.\n// +protobuf=false\ntype Config struct {\n\tName string " +
	"`json:\"name\"`\n}\n"

// Fields of the published API have its numbers, others have their own, and a second run changes nothing.
func TestRun(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "core", "v1")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "fieldnumbers.txt"), published)
	write(t, filepath.Join(folder, "thing_types.go"), types)

	for range 2 {
		if err := run(root, []string{"core/v1"}); err != nil {
			t.Fatal(err)
		}
		want := "# where these come from\ncore/v1.Thing metadata=1 name=4 kind=9 own=1001 base=1002\n"
		if got := read(t, filepath.Join(root, "fieldnumbers.txt")); got != want {
			t.Errorf("numbers are\n%swant\n%s", got, want)
		}
		source := read(t, filepath.Join(folder, "thing_types.go"))
		for _, tag := range []string{
			"`json:\"metadata,omitempty\" protobuf:\"bytes,1,opt,name=metadata\"`",
			"`json:\"name\" protobuf:\"bytes,4,opt,name=name\"`",
			"`json:\"own\" protobuf:\"bytes,1001,opt,name=own\"`",
			"`json:\",inline\" protobuf:\"bytes,1002,opt,name=base\"`",
		} {
			if !strings.Contains(source, tag) {
				t.Errorf("no field has tag %s in\n%s", tag, source)
			}
		}
		if got := strings.Count(source, "protobuf:"); got != 4 {
			t.Errorf("%d fields have a number, want 4:\n%s", got, source)
		}
	}
}

// A field that went away keeps its number, and a number that is written by hand is recorded.
func TestNumbersAreNeverUsedAgain(t *testing.T) {
	numbers, err := parse("m.A gone=1001\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := numbers.of("m.A", "next"); got != 1002 {
		t.Errorf("the next field has number %d, want 1002", got)
	}
	if got := numbers.of("m.A", "gone"); got != 1001 {
		t.Errorf("a field that comes back has number %d, want 1001", got)
	}
}

func TestRefused(t *testing.T) {
	tests := map[string]struct{ numbers, source, want string }{
		"a number twice":  {"m.T a=1 b=1\n", "", "never used again"},
		"a message twice": {"m.T a=1\nm.T b=2\n", "", "twice"},
		"no number":       {"m.T a\n", "", "is not <field>=<number>"},
		"a changed number": {
			"m.T a=1\n", "type T struct {\n\tA int `json:\"a\" protobuf:\"varint,2,opt,name=a\"`\n}\n", "never changed",
		},
		"a number of another": {
			"m.T a=1 b=2\n", "type T struct {\n\tC int `json:\"c\" protobuf:\"varint,2,opt,name=c\"`\n}\n",
			"field b has 2",
		},
		"a tag without number": {
			"", "type T struct {\n\tA int `json:\"a\" protobuf:\"varint\"`\n}\n", "names no number",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			numbers, err := parse(test.numbers)
			if err == nil {
				_, err = tag(numbers, "m", []byte("package m\n\n"+test.source))
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want %q", err, test.want)
			}
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
