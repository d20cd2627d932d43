// Package shown makes texts of others safe for people's terminals: what members, agents and seeds say of themselves
// neither controls a terminal nor begins lines that look like ours.
package shown

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bytes shows control characters as ^[ and the like, except for line ends and tabs; so are those shown that have a text
// read backwards, and what is no UTF-8: some terminals take single bytes for control characters.
func Bytes(text []byte) []byte {
	result := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			result = fmt.Appendf(result, `\x%02x`, text[0])
		case r == '\n' || r == '\t' || !controls(r):
			result = append(result, text[:size]...)
		case r < utf8.RuneSelf:
			result = append(result, '^', text[0]^0x40)
		default:
			result = fmt.Appendf(result, `\u%04x`, r)
		}
		text = text[size:]
	}
	return result
}

// controls says that terminals do something else with a character than to show it: with those of ASCII, the eight-bit
// ones, which terminals obey in their UTF-8 form, too, and those that turn the direction of a text.
func controls(r rune) bool {
	return unicode.IsControl(r) || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069
}

// Line has a value of somebody else neither begin a line nor another column.
func Line(value string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\r', '\t', '\v', '\f', '\u2028', '\u2029':
			return ' '
		}
		return r
	}, strings.ToValidUTF8(value, "\uFFFD"))
}

// Text is Line with control characters shown, for what does not go through a writer that shows them.
func Text(value string) string { return string(Bytes([]byte(Line(value)))) }

// Cut shortens a line to a number of columns. Characters that a terminal may show in two columns count as two, and
// those that it may not show at all as one.
func Cut(line string, columns int) string {
	used := 0
	for i, r := range line {
		wide := 1
		if r >= firstWide {
			wide = 2
		}
		if used+wide > columns {
			return line[:i]
		}
		used += wide
	}
	return line
}

// firstWide is the first character that terminals show in two columns, as far as it matters: some after it take one.
const firstWide = 0x1100
