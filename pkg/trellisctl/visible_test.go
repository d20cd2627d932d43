package trellisctl

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"
)

func TestControlCharactersAreShown(t *testing.T) {
	for text, want := range map[string]string{
		"NAME\tAGE\nä✔ 日本\n":          "NAME\tAGE\nä✔ 日本\n",
		"\x1b[2Jgone":                 "^[[2Jgone",
		"a\rb\x07\x00\x7f":            "a^Mb^G^@^?",
		"\u009b2J, \u0080 and \u00a0": "\\u009b2J, \\u0080 and \u00a0",
	} {
		var out bytes.Buffer
		if n, err := fmt.Fprint(Visible(&out), text); err != nil || n != len(text) {
			t.Errorf("%q: wrote %d, %v", text, n, err)
		}
		if out.String() != want {
			t.Errorf("%q: got %q, want %q", text, out.String(), want)
		}
	}
}

// What a member says of itself can make no row of its own.
func FuzzRows(f *testing.F) {
	f.Add("v1.36.1")
	f.Add("v1\nmember2   yes\t\x1b[1A\xff\v\f")
	f.Fuzz(func(t *testing.T, value string) {
		var out bytes.Buffer
		table := newTable(Visible(&out), "MEMBER", "VERSION")
		table.row("member1", value)
		if err := table.Flush(); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) != 2 || !strings.HasPrefix(lines[1], "member1   ") {
			t.Fatalf("%q makes\n%s", value, out.String())
		}
		if i := strings.IndexFunc(lines[1], unicode.IsControl); i >= 0 {
			t.Fatalf("%q leaves a control character: %q", value, lines[1])
		}
	})
}
