package trellisctl

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// Width of help where no terminal says how wide it is, and the widest that reads well.
const (
	helpWidth    = 80
	maxHelpWidth = 110
)

// foldHelp has the help of a command, and of those below it, fit the terminal.
func foldHelp(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(command *cobra.Command, arguments []string) {
		out := command.OutOrStdout()
		var text bytes.Buffer
		command.SetOut(&text)
		help(command, arguments)
		command.SetOut(out)
		_, _ = io.WriteString(out, fold(text.String(), widthOf(out)))
	})
}

func widthOf(out io.Writer) int {
	if terminal := terminalOf(out); terminal != nil {
		return min(max(columnsOf(terminal), helpWidth/2), maxHelpWidth)
	}
	return helpWidth
}

// entry is an indented line with a name and, after a gap, what it means.
var entry = regexp.MustCompile(`^ +\S+( \S+)*  +`)

// fold breaks lines. Paragraphs, whose lines are not indented, are filled anew; entries of tables go on under their
// second column; other indented lines, like commands to be copied, stay as they are.
func fold(text string, width int) string {
	var b strings.Builder
	var paragraph []string
	end := func() {
		fill(&b, "", paragraph, width)
		paragraph = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		name := entry.FindString(line)
		switch {
		case line != "" && line == strings.TrimLeft(line, " \t"):
			paragraph = append(paragraph, strings.Fields(line)...)
			continue
		case name != "" && utf8.RuneCountInString(line) > width:
			end()
			fill(&b, name, strings.Fields(line[len(name):]), width)
			continue
		}
		end()
		b.WriteString(line + "\n")
	}
	end()
	return b.String()
}

// fill writes words after what stands before them, and under each other. No words are no line.
func fill(b *strings.Builder, before string, words []string, width int) {
	if len(words) == 0 {
		return
	}
	b.WriteString(before)
	margin := utf8.RuneCountInString(before)
	column := margin
	for i, word := range words {
		length := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+length > width:
			b.WriteString("\n" + strings.Repeat(" ", margin))
			column = margin
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += length
	}
	b.WriteString("\n")
}
