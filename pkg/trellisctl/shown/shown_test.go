package shown

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for value, want := range map[string]string{
		"Deploying kube-apiserver":    "Deploying kube-apiserver",
		"a\nError: b\tc\u2028d":       "a Error: b c d",
		"\x1b[2Jgone\u009b1A\x7f":     `^[[2Jgone\u009b1A^?`,
		"back\x08\x08 and \xff there": "back^H^H and \uFFFD there",
	} {
		if got := Text(value); got != want {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		line    string
		columns int
		want    string
	}{
		{"short", 5, "short"}, {"longer", 5, "longe"}, {"日本", 3, "日"}, {"äöü", 2, "äö"}, {"any", 0, ""},
	} {
		if got := Cut(test.line, test.columns); got != test.want {
			t.Errorf("%q: got %q, want %q", test.line, got, test.want)
		}
	}
}

// Whatever somebody writes, it is one line that controls nothing, and no longer than there is room.
func FuzzText(f *testing.F) {
	f.Add("a\r\x1b[K\u0085b\xff", 3)
	f.Fuzz(func(t *testing.T, value string, columns int) {
		text := Cut(Text(value), columns)
		if i := strings.IndexFunc(text, unicode.IsControl); i >= 0 || !utf8.ValidString(text) {
			t.Fatalf("%q leaves %q", value, text)
		}
		if columns >= 0 && utf8.RuneCountInString(text) > columns {
			t.Fatalf("%q has more than %d characters", text, columns)
		}
	})
}
