package trellisctl

import (
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

// oneLine has a value of somebody else neither begin a line nor another column.
func oneLine(value string) string { return shown.Line(value) }
