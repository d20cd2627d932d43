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

func TestBytes(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\nä 日本 \u00a0": "a\tb\nä 日本 \u00a0",
		// Eight-bit terminals take the first for the begin of a command; the second is cut off from its other half.
		"\x9b2J and \xc2":         `\x9b2J and \xc2`,
		"\uFFFD is a character":   "\uFFFD is a character",
		"user\u202etxt.exe\u2066": `user\u202etxt.exe\u2066`,
		"\x00\x1b\x7f\u0090":      `^@^[^?\u0090`,
	} {
		if got := string(Bytes([]byte(text))); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// However a text comes in pieces, no piece controls anything, and neither do all of them together.
func FuzzBytes(f *testing.F) {
	f.Add([]byte("a\u009b2J"), 2)
	f.Add([]byte("\x1b[2J\xc2\x9b"), 5)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		at = min(max(at, 0), len(text))
		shown := string(Bytes(text[:at])) + string(Bytes(text[at:]))
		if !utf8.ValidString(shown) {
			t.Fatalf("%q becomes %q", text, shown)
		}
		for _, r := range shown {
			if r != '\n' && r != '\t' && controls(r) {
				t.Fatalf("%q leaves %q", text, shown)
			}
		}
	})
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
