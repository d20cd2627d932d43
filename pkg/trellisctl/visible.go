package trellisctl

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Visible is a writer for people's terminals. Control characters are shown as ^[ and the like and not obeyed, except
// for line ends and tabs: much of what is printed comes from members and from agents that wait to be accepted.
func Visible(out io.Writer) io.Writer { return visible{out} }

type visible struct{ out io.Writer }

// controls are those of ASCII and the eight-bit ones, which terminals obey in their UTF-8 form, too.
var controls = regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f]|[\x{80}-\x{9f}]`)

func (v visible) Write(text []byte) (int, error) {
	shown := controls.ReplaceAllFunc(text, func(control []byte) []byte {
		if len(control) > 1 {
			return fmt.Appendf(nil, `\u%04x`, []rune(string(control))[0])
		}
		return []byte{'^', control[0] ^ 0x40}
	})
	if _, err := v.out.Write(shown); err != nil {
		return 0, err
	}
	return len(text), nil
}

// oneLine has a value of somebody else neither begin a line nor another column.
func oneLine(value string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\r', '\t', '\v', '\f', '\u2028', '\u2029':
			return ' '
		}
		return r
	}, strings.ToValidUTF8(value, "\uFFFD"))
}
