package trellisctl

import (
	"io"
	"strings"
	"unicode/utf8"
)

// columnGap is what stands between columns.
const columnGap = "   "

// columns line up rows of which some come later: those keep the widths of the first ones as far as they fit. A table,
// in contrast, knows all its rows.
type columns struct {
	out    io.Writer
	widths []int
}

// print writes rows under each other, and under those that were printed before.
func (c *columns) print(rows ...[]string) error {
	lines := make([][]string, len(rows))
	for i, row := range rows {
		for j, text := range row {
			text = cellText(text)
			lines[i] = append(lines[i], text)
			if j == len(c.widths) {
				c.widths = append(c.widths, 0)
			}
			c.widths[j] = max(c.widths[j], utf8.RuneCountInString(text))
		}
	}
	var b strings.Builder
	for _, line := range lines {
		for j, text := range line {
			b.WriteString(text)
			if j < len(line)-1 {
				b.WriteString(strings.Repeat(" ", c.widths[j]-utf8.RuneCountInString(text)) + columnGap)
			}
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(c.out, b.String())
	return err
}
