package trellisctl

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/trellis-garden/trellis/pkg/trellisctl/progress"
)

// terminalOf returns the terminal that a command writes to, or reads from; nil for pipes and files.
func terminalOf(stream any) *os.File {
	if guarded, ok := stream.(visible); ok {
		stream = guarded.out
	}
	if file, ok := stream.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}

// columnsOf is how wide a terminal is now.
func columnsOf(terminal *os.File) int {
	if width, _, err := term.GetSize(int(terminal.Fd())); err == nil && width > 0 {
		return width
	}
	return helpWidth
}

// liveLine shows how far a wait is: by one line of a terminal that is rewritten, elsewhere by one line a change.
type liveLine struct {
	out io.Writer
	// columns is how wide the terminal is that out is, and nil where it is none. What is written to a terminal has no
	// control characters but those of liveLine.
	columns func() int
}

func newLiveLine(out io.Writer) *liveLine {
	terminal := terminalOf(out)
	if terminal == nil {
		return &liveLine{out: out}
	}
	return &liveLine{out: terminal, columns: func() int { return columnsOf(terminal) }}
}

// Control sequences of terminals: to the beginning of the line, and nothing behind it.
const clearLine = "\r\x1b[K"

func (l *liveLine) show(view *progress.View, now time.Time) {
	if l.columns != nil {
		// The last column stays empty: some terminals begin a new line with it.
		_, _ = io.WriteString(l.out, clearLine+view.Line(now, l.columns()-1))
		return
	}
	if line := view.Change(now); line != "" {
		_, _ = io.WriteString(l.out, line+"\n")
	}
}

// clear takes the line of a terminal away, for what is told at the end.
func (l *liveLine) clear() {
	if l.columns != nil {
		_, _ = io.WriteString(l.out, clearLine)
	}
}
