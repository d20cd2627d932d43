// Package shown makes texts of others safe for people's terminals: what members, agents and seeds say of themselves
// neither controls a terminal nor begins lines that look like ours.
package shown

import (
	"fmt"
	"regexp"
	"strings"
)

// controls are those of ASCII and the eight-bit ones, which terminals obey in their UTF-8 form, too.
var controls = regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f]|[\x{80}-\x{9f}]`)

// Bytes shows control characters as ^[ and the like, except for line ends and tabs.
func Bytes(text []byte) []byte {
	return controls.ReplaceAllFunc(text, func(control []byte) []byte {
		if len(control) > 1 {
			return fmt.Appendf(nil, `\u%04x`, []rune(string(control))[0])
		}
		return []byte{'^', control[0] ^ 0x40}
	})
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
