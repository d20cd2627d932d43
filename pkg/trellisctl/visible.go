package trellisctl

import (
	"fmt"
	"io"

	"github.com/trellis-garden/trellis/pkg/trellisctl/shown"
)

// Visible is a writer for people's terminals. Control characters are shown as ^[ and the like and not obeyed, except
// for line ends and tabs: much of what is printed comes from members and from agents that wait to be accepted.
func Visible(out io.Writer) io.Writer { return visible{out} }

type visible struct{ out io.Writer }

func (v visible) Write(text []byte) (int, error) {
	if _, err := v.out.Write(shown.Bytes(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// dataTo is the writer for what is somebody's data and no text about it, such as logs: files and pipes get it byte by
// byte, as from kubectl, and terminals, unlike there, do not obey it.
func dataTo(out io.Writer) io.Writer {
	if guarded, ok := out.(visible); ok && terminalOf(out) == nil {
		return guarded.out
	}
	return out
}

// printLine prints one line, whatever the values in it are.
func printLine(out io.Writer, format string, arguments ...any) {
	fmt.Fprintln(out, oneLine(fmt.Sprintf(format, arguments...)))
}

// oneLine has a value of somebody else neither begin a line nor another column.
func oneLine(value string) string { return shown.Line(value) }
